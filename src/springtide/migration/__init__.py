"""Live migration: each strategy turns moves into steps, which the engine takes at epoch boundaries."""

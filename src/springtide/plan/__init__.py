"""The plan: who does what, as an immutable, versioned value."""

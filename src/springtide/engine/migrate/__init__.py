"""Migrations as they are carried out: live ones step by step, others by a stop and a swap."""

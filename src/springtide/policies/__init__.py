"""Policies: pure functions from a snapshot, and what was done before, to a decision with its reason."""

"""Dataflows that are moved to other workers while they run."""

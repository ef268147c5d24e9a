"""Keyed state: slices, runs, chains, and what operators do with them."""

"""Seeded rows that are due by the wall clock, as a source."""

"""Figures, tables and pictures for people: what the command line and the benchmarks share."""

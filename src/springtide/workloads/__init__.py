"""Dataflows and data that examples, benchmarks and tests share."""

"""Runs epochs on Spark; the only room that knows Spark's inside."""

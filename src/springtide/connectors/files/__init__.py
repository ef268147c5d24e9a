"""Files as a source, by Spark's own readers."""

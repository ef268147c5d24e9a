"""When to have more or fewer workers."""

"""Spark's executors: asked for, warmed up, watched, shared between apps, let go."""

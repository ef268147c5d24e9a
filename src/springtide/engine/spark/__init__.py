"""Spark itself: its session, its Java, what it is told, and every use of what it does not publish."""

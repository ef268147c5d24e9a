"""`springtide bench join`: its parts."""

"""How much comes, and what it costs."""

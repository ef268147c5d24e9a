"""How often the intervals of estimates hold the truth."""

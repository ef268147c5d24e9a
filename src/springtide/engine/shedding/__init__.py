"""Which rows are shed, and how many rows were taken."""

"""More rows than the machine can work on, with shedding and without."""

"""What came of a simulation: its story, its books, its picture."""

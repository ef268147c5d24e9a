"""What to compute: apps, streams, operators, sources and sinks, as a frozen graph."""

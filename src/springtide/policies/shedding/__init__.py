"""Which query gives way, and by how much, when there is more load than machine."""

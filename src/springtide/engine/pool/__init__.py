"""Who runs the epochs: the embedded pool, or the elastic one that replicates, recovers and copies."""

"""One epoch: bind and build DataFrames, shuffle, update keyed steps, commit, publish."""

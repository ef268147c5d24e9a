"""The experiments, each beside its peer."""

"""Immutable blocks, the stores they lie in, manifests, and garbage collection."""

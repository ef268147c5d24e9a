"""Experiments: each runs its peer beside it, and reports ratios measured in one run."""

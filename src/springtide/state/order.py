"""The order of rows by two numbers."""

import numpy as np

from springtide.state.keys import Indices

_GREATEST = (1 << 63) - 1


def order_within(groups: Indices, numbers: Indices) -> Indices:
    """Row numbers by group, and within each by number; rows that are equal in both stay as they came."""
    if not len(groups):
        return np.empty(0, np.int64)
    lowest, least = int(groups.min()), int(numbers.min())
    span = int(numbers.max()) - least + 1
    if (int(groups.max()) - lowest + 1) * span <= _GREATEST:
        # One number for both is sorted several times as fast.
        return np.argsort((groups - lowest) * span + (numbers - least), kind="stable")
    return np.lexsort((numbers, groups))

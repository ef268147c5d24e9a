"""Keys that stand out, found in a sample of the rows."""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from springtide.engine.wire.commit_record import HOTTEST
from springtide.metrics.report import HotKey
from springtide.state.position import Positions, slice_of

SAMPLE = 4096
"""Rows that are looked at, evenly spread."""
SHARE = 0.02
"""A key stands out if it has this share of them."""
SHORT = 80
"""Characters of a key that are told."""


def hot_keys(positions: Positions, keys: list[pa.Array], slices: int) -> tuple[HotKey, ...]:
    """The keys with the most rows, if any stand out; how many rows is an estimate."""
    step = max(1, len(positions) // SAMPLE)
    sample = positions[::step]
    values, first, counts = np.unique(sample, return_index=True, return_counts=True)
    if len(sample) < SAMPLE // 4 or len(values) == 0:
        return ()
    numbers = slice_of(values, slices)
    found = []
    for i in np.argsort(-counts, kind="stable")[:HOTTEST]:
        if counts[i] >= SHARE * len(sample):
            found.append(HotKey(_text(keys, int(first[i]) * step), int(numbers[i]), int(counts[i]) * step))
    return tuple(found)


def _text(keys: list[Any], row: int) -> str:
    return json.dumps([key[row].as_py() for key in keys], default=str)[:SHORT]

"""A migration whose target, a new worker, has written copies of moving slices, and nobody knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cluster_kit import SLICES, Cluster
from holding import held
from processes import Process

from springtide.blocks.block import decode
from springtide.state.layout import POSITION
from springtide.state.position import slice_of

COPIED = "copy.written"


@dataclass(frozen=True)
class Target:
    """A worker that is being supplied."""

    id: str
    executor: Process
    moving: frozenset[int]
    """The slices that it is to own."""
    copies: frozenset[str]
    """What it has of them so far."""


@contextmanager
def supplying(cluster: Cluster, strategy: str) -> Iterator[Target]:
    """Grow by one worker. While the block lasts, the new one is held when it has written a copy of a moving slice.

    It stands by for nothing else, so that nothing else is copied to it.
    """
    before = cluster.driver.executors()
    cluster.client.scale(len(cluster.workers()) + 1, strategy)
    ((target, executor),) = cluster.until(
        "a new executor", lambda: {w: e for w, e in cluster.driver.executors().items() if w not in before}
    ).items()
    with held(cluster, COPIED, executor):
        moving, parts = cluster.standby(target), set((cluster.local / target).glob("[a-z]*.part.*"))
        assert any(carries(part, moving) for part in parts)
        yield Target(target, executor, moving, frozenset(part.name for part in parts))


def carries(part: Path, slices: frozenset[int]) -> bool:
    """Whether a copy has rows of some of these slices."""
    positions = decode(part.read_bytes()).column(POSITION).to_numpy()
    return bool(np.isin(slice_of(positions, SLICES), list(slices)).any())

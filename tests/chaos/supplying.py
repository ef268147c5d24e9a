"""A migration whose target has written copies of moving slices, and nobody knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cluster_kit import SLICES, STEPS, Cluster
from holding import held

from springtide.blocks.block import decode, format_slices
from springtide.state.layout import POSITION
from springtide.state.position import slice_of

STEP = STEPS[0]
COPIED = "copy.written"


@contextmanager
def supplying(cluster: Cluster, target: str, strategy: str) -> Iterator[frozenset[int]]:
    """Move slices of the first step to a worker that has nothing of them; while the block lasts, copies are held.

    The block begins when a copy of a moving slice is on the target, and its task is still under way. Gives the slices.
    """
    moving, there = strange_to(cluster, target), parts_of(cluster, target)
    cluster.client.move(STEP, format_slices(moving), target, strategy)
    cluster.until("a target that stands by", lambda: moving <= cluster.standby(target))
    with held(cluster, COPIED, cluster.executor(target)):
        cluster.until(
            "a copy of a moving slice", lambda: any(carries(p, moving) for p in parts_of(cluster, target) - there)
        )
        yield moving


def strange_to(cluster: Cluster, worker: str) -> frozenset[int]:
    """Slices that a worker neither owns nor stands by for."""

    def look() -> frozenset[int]:
        return frozenset(range(SLICES)) - cluster.owners()[STEP].get(worker, frozenset()) - cluster.standby(worker)

    return cluster.until(f"slices that worker {worker} has nothing to do with", look)


def parts_of(cluster: Cluster, worker: str) -> set[Path]:
    """The copies of the first step's slices that lie on a worker."""
    return set((cluster.local / worker).glob(f"{STEP}.*.part.*"))


def carries(part: Path, slices: frozenset[int]) -> bool:
    """Whether a copy has rows of some of these slices."""
    positions = decode(part.read_bytes()).column(POSITION).to_numpy()
    return bool(np.isin(slice_of(positions, SLICES), list(slices)).any())

"""Processes that are held at a failpoint with the action `hold`, for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

from chaos_kit import head
from cluster_kit import Cluster
from processes import Process

from springtide.blocks.manifest import Manifest

BETWEEN, COPYING = "epoch.start", "copy.read"
HOLDING = (f"{BETWEEN}=hold", f"{COPYING}=hold")
"""The failpoints of a cluster whose epochs and copies can be held."""


def holds(cluster: Cluster, point: str, one: Process) -> bool:
    """Whether a process, or one that it has started, is held."""
    return any((cluster.markers / f"{point}.{p.pid}").exists() for p in one.family())


@contextmanager
def held(cluster: Cluster, point: str, who: Process | None = None) -> Iterator[None]:
    """Hold whoever comes to a failpoint; the block begins when somebody is held, or `who` is."""
    cluster.arm(point)
    try:
        cluster.until(f"somebody held at {point}", lambda: holds(cluster, point, who or cluster.driver))
        yield
    finally:
        cluster.disarm(point)


@contextmanager
def between_epochs(cluster: Cluster) -> Iterator[Manifest]:
    """No epoch runs while the block lasts; gives the last one that is true."""
    with held(cluster, BETWEEN):
        last = head(cluster.checkpoint)
        assert last is not None
        yield last


@contextmanager
def no_copies(cluster: Cluster) -> Iterator[None]:
    """A job of copies is held before it reads, so that no base of a replica moves while the block lasts."""
    with held(cluster, COPYING):
        yield

"""Processes that are held at a failpoint with the action `hold`, for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos_kit import head
from cluster_kit import Cluster
from processes import Process

from springtide.blocks.manifest import Manifest

BETWEEN, COPYING = "epoch.start", "copy.read"
HOLDING = (f"{BETWEEN}=hold", f"{COPYING}=hold")
"""The failpoints of a cluster whose epochs and copies can be held."""


def hold(markers: Path, point: str, who: Process | None = None) -> None:
    """From now on, whoever comes to a failpoint is held there; or only a process and those it has started."""
    for earlier in markers.glob(f"{point}.*"):
        earlier.unlink()
    new = markers / f"new.{point}"
    new.write_text("" if who is None else str(who.pid))
    new.rename(_order(markers, point))


def let_go(markers: Path, point: str) -> None:
    """Nobody is held there any more."""
    _order(markers, point).unlink(missing_ok=True)


def holds(markers: Path, point: str) -> bool:
    """Whether somebody is held."""
    order = _order(markers, point)
    return order.exists() and any(path != order for path in markers.glob(f"{point}.*"))


@contextmanager
def held(cluster: Cluster, point: str, who: Process | None = None) -> Iterator[None]:
    """The block begins when somebody is held, and lets them go in the end."""
    hold(cluster.markers, point, who)
    try:
        cluster.until(f"somebody held at {point}", lambda: holds(cluster.markers, point))
        yield
    finally:
        let_go(cluster.markers, point)


def _order(markers: Path, point: str) -> Path:
    return markers / f"{point}.hold"


@contextmanager
def between_epochs(cluster: Cluster) -> Iterator[Manifest]:
    """No epoch runs while the block lasts; gives the last one that is true."""
    with held(cluster, BETWEEN):
        last = head(cluster.checkpoint)
        assert last is not None
        yield last

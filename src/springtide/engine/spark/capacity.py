"""How many workers a machine or a cluster can carry."""

from collections.abc import Iterable
from dataclasses import dataclass

from springtide.migration.errors import Refused

MIB, GIB = 1 << 20, 1 << 30
SLOTS = 2
"""Of a worker: one for state, one for copies."""
BOX_MEMORY_MB = 1024
"""Of a worker in a box, for its JVM."""


@dataclass(frozen=True)
class Cost:
    """What one worker takes."""

    cores: float
    memory_bytes: int


BOX = Cost(0.25, (BOX_MEMORY_MB + 256) * MIB)
"""In a box: four share a core, as most wait for one another; the JVM has its share of memory, and Python 256 MiB."""


@dataclass(frozen=True)
class Capacity:
    """How many workers fit, and the figures behind it."""

    workers: int | None
    """None if nobody can tell: then there is no limit."""
    cores: int | None = None
    memory_bytes: int | None = None
    because: str = ""
    """In words: who says so."""

    def check(self, wanted: int) -> None:
        """Refused, with the figures, if more are wanted than fit."""
        if self.workers is not None and wanted > self.workers:
            raise Refused(
                f"{wanted} workers asked for; {self.because} carries at most {self.workers}: "
                "ask for fewer, or use --force (force=True) if you know better"
            )


UNKNOWN = Capacity(None)


def box_capacity(cores: int, free_bytes: int | None, *, running: int = 0, cost: Cost = BOX) -> Capacity:
    """Of one machine that runs some workers already: their memory is not free any more. One always fits."""
    fitting = [int(cores / cost.cores)]
    if free_bytes is not None:
        fitting.append(running + free_bytes // cost.memory_bytes)
    memory = "" if free_bytes is None else f", {_gib(free_bytes)} free"
    beside = f" beside {running} workers" if running and free_bytes is not None else ""
    because = f"this machine ({_plural(cores, 'core')}{memory}{beside})"
    return Capacity(max(1, min(fitting)), cores, free_bytes, because)


def cluster_capacity(machines: Iterable[tuple[int, int]], slots: int, executor_mb: int) -> Capacity:
    """Of machines, each by its cores and MiB, if all are for executors of this size; unknown without machines."""
    found = list(machines)
    if not found:
        return UNKNOWN
    cores, memory = sum(cores for cores, _ in found), sum(mb for _, mb in found) * MIB
    most = sum(min(cores // slots, mb // executor_mb) for cores, mb in found)
    because = f"the cluster ({_plural(len(found), 'machine')}, {_plural(cores, 'core')}, {_gib(memory)})"
    return Capacity(most, cores, memory, because)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.0f} GiB" if size_bytes >= 10 * GIB else f"{size_bytes / GIB:.1f} GiB"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"

"""Snapshots of workers, slices and traffic, made by hand."""

from collections.abc import Mapping

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import MeasuredWorker, Slice, Snapshot

A, B, C, D = map(WorkerId, "abcd")


def worker(name: WorkerId, queue_rows: float = 0, cpu: float = 0.0, slots: int = 1) -> MeasuredWorker:
    return MeasuredWorker(name, slots, cpu, queue_rows)


def cluster(
    *workers: MeasuredWorker,
    owners: Mapping[str, str] | None = None,
    loads: Mapping[tuple[str, int], float] | None = None,
    traffic: Mapping[tuple[str, WorkerId, SliceId], float] | None = None,
    at: float = 1_000.0,
) -> Snapshot:
    """Workers, and by step the owner of each slice as one letter; each slice takes 0.1 s a second unless told."""
    slices = tuple(
        Slice(step, SliceId(number), WorkerId(owner), 100.0, (loads or {}).get((step, number), 0.1))
        for step, letters in (owners or {}).items()
        for number, owner in enumerate(letters)
    )
    return Snapshot(at, 10.0, 5, (), (), (), workers, slices, traffic or {})

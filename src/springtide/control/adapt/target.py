"""A running app that adapts: what its loop sees and changes."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from springtide.dataflow.graph import Graph, Keyed
from springtide.engine.lifecycle.running import Running
from springtide.ids import SliceId, WorkerId
from springtide.metrics.report import EpochReport
from springtide.metrics.snapshot import MeasuredWorker, Snapshot
from springtide.metrics.snapshot_builder import Shape, observe
from springtide.migration.progress import Migration
from springtide.migration.step import Options

USUAL = 5
"""Epochs just before a migration that tell how long one takes under the load there is."""


class AdaptedRunning:
    """The app of this process, with several workers."""

    def __init__(self, graph: Graph, running: Running) -> None:
        self._running = running
        self._edges = edges(graph)
        self._pause_s = 0.0
        self.force = False
        """Grow also beyond what there is room for."""

    def snapshot(self, window_s: float) -> Snapshot | None:
        pool = self._running.pool
        plan = pool.plan
        workers = [worker for worker in map(plan.worker, pool.roster.ring_order()) if worker is not None]
        shape = Shape(
            self._edges,
            tuple(MeasuredWorker(w.id, w.slots, host=w.host) for w in workers),
            {step: share.owners for step, share in plan.operators.items()},
            self._pause_s,
        )
        return observe(self._running.reports, shape, window_s)

    def scale(self, workers: int, strategy: str) -> Migration:
        return self._running.scale(workers, strategy, Options(force=self.force))

    def move(self, operator: str, slices: frozenset[SliceId], to: WorkerId, strategy: str) -> Migration:
        return self._running.move(operator, slices, to, strategy)

    def pause_of(self, migration: Migration) -> float:
        found = pause(self._running.reports, migration)
        self._pause_s = max(self._pause_s, found)
        return found


def pause(reports: Sequence[EpochReport], migration: Migration) -> float:
    """The longest gap between two epochs while slices were copied and moved, beyond what is usual."""
    began = migration.phases.get("copying", migration.began_at)
    ended = migration.ended_at if migration.ended_at is not None else reports[-1].ended_at
    times = [report.ended_at for report in reports]
    gaps = [(late, late - early) for early, late in pairwise(times)]
    usual = [gap for late, gap in gaps if late <= began][-USUAL:]
    during = [gap for late, gap in gaps if began < late <= ended + (gap if late > ended else 0.0)]
    if not usual or not during:
        return 0.0
    return max(0.0, max(during) - median(usual))


def edges(graph: Graph) -> tuple[tuple[str, str], ...]:
    """From each source or keyed step to the keyed steps that its rows reach without another one between."""
    return tuple((up, node.name) for node in graph.of(Keyed) for up in sorted(graph.feeders[node.name]))

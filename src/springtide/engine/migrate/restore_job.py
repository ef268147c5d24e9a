"""The jobs that give new workers their state, and see that every one of them has it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import OperatorState
from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.stall import Stalled
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.restore import FetchRuns
from springtide.engine.worker.task_context import Storage
from springtide.ids import SliceId, WorkerId
from springtide.migration.phase import Init
from springtide.plan.plan import OperatorPlan, Plan

Wanted = dict[WorkerId, tuple[BlockRef, ...]]


@dataclass(frozen=True)
class RestoreJob:
    """Placed tasks fetch what their workers are to own, from the durable store."""

    spark: SparkSession
    cluster: Cluster
    storage: Storage
    watch: JobWatch

    def __call__(self, init: Init, states: Mapping[str, OperatorState], plan: Plan, timeout_s: float) -> bool:
        """Whether every worker has said in time that it has its state; who says nothing is told again."""
        deadline = time.monotonic() + timeout_s
        groups = [[step] for step in plan.operators] if init.in_order else [list(plan.operators)]
        done = [self._group(wanted(group, states, plan), plan, init.resend_s, deadline) for group in groups]
        return all(done)

    def _group(self, runs: Wanted, plan: Plan, resend_s: float, deadline: float) -> bool:
        waiting = [worker.id for worker in plan.workers]
        while waiting:
            sent = time.monotonic()
            said = self._send(runs, waiting)
            waiting = [worker for worker in waiting if worker not in said]
            if waiting and time.monotonic() > deadline:
                return False
            if waiting:
                time.sleep(max(0.0, min(sent + resend_s, deadline) - time.monotonic()))
        return True

    def _send(self, runs: Wanted, workers: Sequence[WorkerId]) -> frozenset[WorkerId]:
        task = FetchRuns({worker: runs.get(worker, ()) for worker in workers}, tuple(workers), self.storage)
        numbers = self.spark.range(0, len(workers), 1, len(workers))
        try:
            with self.watch.job("app", "restoring state"):
                rows = self.cluster.place(numbers, workers).mapInArrow(task, RECORD).collect()
        except (PySparkException, Stalled):  # One of them is gone, or the store is away: who waits is told again.
            return frozenset()
        return frozenset(WorkerId(row.record) for row in rows)


def wanted(steps: Iterable[str], states: Mapping[str, OperatorState], plan: Plan) -> Wanted:
    """By worker: the runs that hold something of its slices."""
    found: dict[WorkerId, list[BlockRef]] = {}
    for step in steps:
        for worker, slices in _slices(plan.operators[step]).items():
            runs = states[step].runs if step in states else ()
            found.setdefault(worker, []).extend(run for run in runs if run.slices & slices)
    return {worker: tuple(runs) for worker, runs in found.items()}


def _slices(share: OperatorPlan) -> dict[WorkerId, frozenset[SliceId]]:
    found: dict[WorkerId, set[SliceId]] = {}
    for number, owner in enumerate(share.owners):
        found.setdefault(owner, set()).add(SliceId(number))
    return {worker: frozenset(slices) for worker, slices in found.items()}

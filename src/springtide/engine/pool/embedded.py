"""The embedded pool: one worker, which is the driver's own process, under one plan for ever."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from springtide.blocks.manifest import Manifest
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.ownership.held_state import HeldState, SoleState
from springtide.engine.wire.retry_signals import Replan
from springtide.engine.worker.task_context import Storage
from springtide.ids import WorkerId
from springtide.migration.phase import Point
from springtide.plan.plan import Plan


class EmbeddedPool:
    """An ExecutorPool of one worker that is always there."""

    durable = True

    def __init__(self, plan: Plan, storage: Storage, watch: JobWatch) -> None:
        self._plan, self.storage, self.watch = plan, storage, watch
        self.state: HeldState = SoleState(plan)

    @property
    def plan(self) -> Plan:
        return self._plan

    def boundary(self, head: Manifest | None) -> Plan:
        return self.plan

    def replan(self, error: Exception, head: Manifest | None) -> Plan:
        if isinstance(error, Replan):
            return self.plan  # Its files are gone; the durable store may have them.
        raise error

    def waiting(self) -> str | None:
        return None

    def due(self, here: Point) -> bool:
        return False

    def swap(self, keeping: StopState) -> Plan:
        return self.plan

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        return frame

    def spread(self, frame: DataFrame) -> DataFrame:
        return frame

    @contextmanager
    def job(self) -> Iterator[None]:
        yield

    def departed(self) -> tuple[WorkerId, ...]:
        return ()

    def stop(self) -> None:
        return None

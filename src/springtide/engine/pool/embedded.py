"""The embedded pool: one worker, which is the driver's own process, under one plan for ever."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

from pyspark.sql import DataFrame

from springtide.blocks.block import parse_slices
from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.ownership.standby import Kept, owed
from springtide.engine.wire.retry_signals import Replan
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Behind, Parts
from springtide.engine.worker.store import Deposit
from springtide.engine.worker.task_context import Storage
from springtide.ids import WorkerId
from springtide.migration.phase import Point
from springtide.plan.plan import Plan


class EmbeddedPool:
    """An ExecutorPool of one worker that is always there."""

    durable = True

    def __init__(self, plan: Plan, storage: Storage, watch: JobWatch) -> None:
        self._plan, self.storage, self.watch = plan, storage, watch

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

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        return owed(state, self.plan.operators[step])

    def parts(self) -> Mapping[WorkerId, Parts]:
        return {}

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        return frame

    def spread(self, frame: DataFrame) -> DataFrame:
        return frame

    @contextmanager
    def job(self) -> Iterator[None]:
        yield

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
        return ()

    def pinned(self) -> set[str]:
        return set()

    def departed(self) -> tuple[WorkerId, ...]:
        return ()

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        runs = (run for state in states.values() for run in state.runs if run.name not in stored)
        return [Deposit(run, parse_slices(run.slices), self.plan.workers[0].id) for run in runs]

    def unsound(self, faults: Sequence[Fault]) -> bool:
        return False

    def went_back(self, head: Manifest | None) -> None:
        return None

    def stop(self) -> None:
        return None

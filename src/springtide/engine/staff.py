"""Who runs an epoch: one worker that is always there, or a workforce that changes."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from pyspark.sql import DataFrame

from springtide.blocks.block import parse_slices
from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.job_watch import JobWatch
from springtide.engine.keeping import Keeping
from springtide.engine.replan import Replan
from springtide.engine.standby import Kept, owed
from springtide.engine.worker.deposit import Deposit
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.opening import Behind, Parts
from springtide.engine.worker.task import Storage
from springtide.ids import WorkerId
from springtide.migration.phase import Point
from springtide.plan.plan import Plan


class Staff(Protocol):
    """What an epoch asks of those who run it. One plan holds from a boundary to the next, or to a `replan`."""

    storage: Storage
    watch: JobWatch
    """Of the jobs that run for the app."""

    @property
    def plan(self) -> Plan:
        """The plan in force."""

    @property
    def durable(self) -> bool:
        """State that is not on its worker may be read from the durable store."""

    def boundary(self, head: Manifest | None) -> Plan:
        """The plan of the epoch after `head`: changes take effect here."""

    def replan(self, error: Exception, head: Manifest | None) -> Plan:
        """Another plan for the same epoch after an attempt failed; raises the error if that is no help."""

    def waiting(self) -> str | None:
        """What waits for the next epoch and could be done at its beginning, if no row comes to bring one about."""

    def due(self, here: Point) -> bool:
        """Whether the app is to stop here, for its workers to be swapped."""

    def swap(self, keeping: Keeping) -> Plan:
        """Swap the workers, now that the app has stopped; the plan under which it goes on."""

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        """How new owners of an operator's slices get to the state they start from."""

    def parts(self) -> Mapping[WorkerId, Parts]:
        """What workers hold of others' runs."""

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        """The same rows, partition i on `workers[i]`."""

    def spread(self, frame: DataFrame) -> DataFrame:
        """The same rows, on workers that are ready for them."""

    def job(self) -> AbstractContextManager[None]:
        """Around every job of an epoch."""

    def committed(
        self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]
    ) -> tuple[str, ...]:
        """An epoch is true; the blocks that workers can let go."""

    def pinned(self) -> set[str]:
        """Blocks that are needed though the last manifests do not name them."""

    def departed(self) -> tuple[WorkerId, ...]:
        """Workers that are gone, and may have left a directory behind."""

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        """Who can make which runs durable, beside those that are."""

    def unsound(self, faults: Sequence[Fault]) -> bool:
        """Blocks were found missing or damaged. True if that was not known, so that somebody else may be asked."""

    def went_back(self, head: Manifest | None) -> None:
        """The app goes on from an earlier state: what workers have kept since is of no use."""

    def stop(self) -> None:
        """Let go what runs beside the epochs."""


class Alone:
    """Embedded Spark: one worker, one plan for ever."""

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

    def swap(self, keeping: Keeping) -> Plan:
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

    def committed(
        self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]
    ) -> tuple[str, ...]:
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

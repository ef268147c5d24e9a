"""What an epoch asks of those who run it: one worker that is always there, or several that change."""

from collections.abc import Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame

from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.ownership.standby import Kept
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Behind, Parts
from springtide.engine.worker.store import Deposit
from springtide.engine.worker.task_context import Storage
from springtide.ids import WorkerId
from springtide.migration.phase import Point
from springtide.plan.plan import Plan


class ExecutorPool(Protocol):
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

    def swap(self, keeping: StopState) -> Plan:
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

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
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

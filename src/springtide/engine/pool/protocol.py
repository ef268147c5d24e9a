"""What an epoch asks of those who run it: one worker that is always there, or several that change."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame

from springtide.blocks.manifest import Manifest
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.ownership.held_state import HeldState
from springtide.engine.worker.task_context import Storage
from springtide.ids import WorkerId
from springtide.migration.phase import Point
from springtide.plan.plan import Plan


class ExecutorPool(Protocol):
    """What an epoch asks of those who run it. One plan holds from a boundary to the next, or to a `replan`."""

    storage: Storage
    watch: JobWatch
    """Of the jobs that run for the app."""
    state: HeldState
    """Which worker holds what."""

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

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        """The same rows, partition i on `workers[i]`."""

    def spread(self, frame: DataFrame) -> DataFrame:
        """The same rows, on workers that are ready for them."""

    def job(self) -> AbstractContextManager[None]:
        """Around every job of an epoch."""

    def departed(self) -> tuple[WorkerId, ...]:
        """Workers that are gone, and may have left a directory behind."""

    def stop(self) -> None:
        """Let go what runs beside the epochs."""

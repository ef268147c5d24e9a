"""An epoch between its jobs and its commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.blocks.manifest import Manifest
from springtide.engine.durability.spark_log import NOT_BEGUN
from springtide.engine.ownership.standby import Kept
from springtide.engine.shedding.rows_taken import RowsTaken
from springtide.metrics.report import OperatorReport, QueryReport


@dataclass(frozen=True)
class Computed:
    """An epoch that is ready to be made true, or was made true before."""

    manifest: Manifest
    parent: Manifest | None = None
    """The epoch before, as it is stored now."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """By keyed step: what workers that stand by have kept of it."""
    reports: tuple[OperatorReport, ...] = ()
    queries: tuple[QueryReport, ...] = ()
    taken: RowsTaken | None = None
    """What tasks have told of the sources' rows; None if offsets tell."""
    retries: int = 0
    replayed: bool = False
    published_again: bool = False
    """It was computed before, by another driver, and is only published now."""

    @property
    def without_input(self) -> bool:
        """Whether no source has given anything: the epoch was needed for something else."""
        now = self.manifest.offsets
        return now == ((NOT_BEGUN,) * len(now) if self.parent is None else self.parent.offsets)

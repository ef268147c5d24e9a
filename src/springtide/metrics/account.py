"""The account of an epoch: what became of its rows. It is committed with the epoch, so nobody has to have seen it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from springtide.metrics.report import OperatorReport, QueryReport


@dataclass(frozen=True)
class StepAccount:
    """The rows of one keyed or captured step: all that its report tells of them, by the same names."""

    step: str
    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    malformed_rows: int = 0
    shed_rows: int = 0
    ahead_rows: int = 0

    @classmethod
    def of(cls, report: OperatorReport) -> "StepAccount":
        return cls(**{each.name: getattr(report, each.name) for each in fields(cls)})


@dataclass(frozen=True)
class Account:
    """What became of an epoch's rows; counted before the epoch is committed, when all its rows have been read."""

    sources: Mapping[str, int] = field(default_factory=dict)
    """By source: the rows that it gave, malformed ones too."""
    malformed: int = 0
    """How many of them could not be read as what their source says they are."""
    rows_out: int = 0
    """Rows that steps gave to sinks; a step with several sinks counts once."""
    steps: tuple[StepAccount, ...] = ()
    queries: tuple[QueryReport, ...] = ()
    """None if no query of the app can do with less than everything."""

    @property
    def dead_letters(self) -> int:
        """Rows that do not fit their schema, or their step's types."""
        return self.malformed + sum(step.malformed_rows for step in self.steps)

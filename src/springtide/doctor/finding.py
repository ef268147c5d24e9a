"""What a check found, and what to do about it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    WARNING = "warning"
    """There, but some apps will not do well."""
    MISSING = "missing"
    """Not there, or of no use as it is."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    """What is there, or why it is of no use."""
    remedy: str = ""
    """What to do about it; empty if there is nothing to do."""
    needed: bool = False
    """Whether no app runs without it."""

    @property
    def prevents(self) -> bool:
        """Whether no app can run as it is."""
        return self.needed and self.state is State.MISSING

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def ready(findings: Iterable[Finding]) -> bool:
    """Whether all is there that every app needs."""
    return not any(finding.prevents for finding in findings)

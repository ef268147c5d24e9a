"""The phases of a migration that stops the app: from the first to the last of them no operator runs."""

from dataclasses import dataclass
from enum import IntEnum


class Point(IntEnum):
    """Where an app can be when it stops; who may stop at one may stop at every later one."""

    ANYWHERE = 0
    """Wherever it is: the jobs that run are cancelled."""
    OPERATORS = 1
    """Between two operators: those that run now are finished, and what comes after them is pending."""
    EPOCHS = 2
    """Between two epochs: the one in flight is finished."""


@dataclass(frozen=True)
class Prepare:
    """Admit no further epoch, and stop at the next such point."""

    stop: Point


@dataclass(frozen=True)
class Commit:
    """Make the state durable, and with it what is pending of the epoch in flight."""


@dataclass(frozen=True)
class Swap:
    """All workers go, and others come."""


@dataclass(frozen=True)
class Init:
    """The new workers fetch their state: one operator after the other, or all at once.

    Who has not said that it has it is told again after a while; who has it does nothing.
    """

    in_order: bool
    resend_s: float


Phase = Prepare | Commit | Swap | Init

"""What happened in a run: figures over time, events, and what they come to."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from springtide.simulator.report.books import Totals

DECISION, MIGRATION, FAILURE, RECOVERY = "decision", "migration", "failure", "recovery"
KEEPS_UP = 0.98
"""A run is stable once this share of what falls due is processed, with no change after it."""


@dataclass(frozen=True)
class Sample:
    """Since the sample before it."""

    at_s: float
    arriving: float
    """Rows a second that fell due."""
    processed: float
    """Rows a second that were taken from the sources and processed."""
    lag_rows: int
    lag_s: float
    workers: int
    """Those that are paid for."""
    busy: float
    """The share of their slots' time that went to rows."""
    remote: float = 0.0
    """The share of rows between operators that went to another host."""
    parallelism: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    at_s: float
    kind: str
    what: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """A run in one line."""

    scenario: str
    policy: str
    steps_up: int
    steps_down: int
    rebalances: int
    stable_s: float | None
    """When the last change of a run that keeps up was over; None if it does not keep up in the end."""
    overshoot: int
    """Workers at most, above those at the end."""
    workers: int
    """At the end."""
    core_s: float
    throughput: float
    """Rows a second taken from the sources and processed, on average."""
    busy: float
    """The share of slots' time that went to rows, on average."""
    remote: float
    """The share of rows between operators that went to another host, in the last tenth."""
    most_lag_rows: int
    most_lag_s: float
    failures: int
    """Workers lost."""
    recovery_s: float | None
    """The longest time from a loss to the next result."""
    went_back: int
    """How often state had lost every copy, and the app went back to its last durable checkpoint."""
    repeated_rows: int
    """Processed once more after that."""
    offered: int
    processed: int
    waiting: int
    lost: int
    doubled: int


class Story:
    """Written while a run goes on."""

    def __init__(self, scenario: str, policy: str) -> None:
        self.scenario, self.policy = scenario, policy
        self.samples: list[Sample] = []
        self.events: list[Event] = []
        self.core_s = 0.0
        self.repeated_rows = 0
        self.went_back = 0

    def tell(self, at_s: float, kind: str, what: str, **details: Any) -> None:
        self.events.append(Event(round(at_s, 3), kind, what, details))

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def steps(self, direction: str) -> list[Event]:
        """The decisions to scale that were carried out: `up`, `down` or `rebalance`."""
        return [e for e in self.of(DECISION) if e.details.get("step") == direction]

    def summary(self, totals: Totals) -> Summary:
        recoveries = self.of(RECOVERY)
        last = self.samples[-max(1, len(self.samples) // 10) :]
        paid = [sample.workers for sample in self.samples]
        return Summary(
            scenario=self.scenario,
            policy=self.policy,
            steps_up=len(self.steps("up")),
            steps_down=len(self.steps("down")),
            rebalances=len(self.steps("rebalance")),
            stable_s=self._stable_s(last),
            overshoot=max(paid) - paid[-1],
            workers=paid[-1],
            core_s=round(self.core_s, 1),
            throughput=round(_mean([s.processed for s in self.samples]), 1),
            busy=round(_mean([s.busy for s in self.samples]), 3),
            remote=round(_mean([s.remote for s in last]), 3),
            most_lag_rows=max(sample.lag_rows for sample in self.samples),
            most_lag_s=round(max(sample.lag_s for sample in self.samples), 1),
            failures=sum(e.details["workers"] for e in self.of(FAILURE)),
            recovery_s=max((e.details["seconds"] for e in recoveries), default=None),
            went_back=self.went_back,
            repeated_rows=self.repeated_rows,
            **asdict(totals),
        )

    def to_json(self, totals: Totals) -> str:
        """The whole run as one line."""
        return json.dumps(
            {
                **asdict(self.summary(totals)),
                "events": [asdict(event) for event in self.events],
                "samples": [asdict(sample) for sample in self.samples],
            }
        )

    def _stable_s(self, last: Sequence[Sample]) -> float | None:
        arriving, processed = sum(s.arriving for s in last), sum(s.processed for s in last)
        if processed < KEEPS_UP * arriving:
            return None
        changes = [e.at_s for e in self.events if e.kind == MIGRATION]
        return round(max(changes, default=0.0), 1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

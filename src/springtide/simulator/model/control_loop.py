"""The control loop: observe, decide, record, enact."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Protocol

import simpy

from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Decision, Hold, Scale
from springtide.policies.effect import gauge, helped
from springtide.policies.guards import Stable, Verdict
from springtide.policies.past import AppState, Entry, Past
from springtide.policies.policy import Policy
from springtide.simulator.report.story import DECISION, Sample, Story


class Plant(Protocol):
    """What is steered."""

    @property
    def busy(self) -> str:
        """The change that is under way, in words; empty if there is none."""

    @property
    def workers(self) -> int: ...

    @property
    def cores(self) -> int: ...

    @property
    def epochs_s(self) -> tuple[float, ...]:
        """How long each epoch took so far, if there are epochs."""

    @property
    def lag_rows(self) -> float:
        """Rows that waited at the end of an epoch so far, on average."""

    @property
    def measured_s(self) -> float:
        """How long the next look goes back."""

    def observe(self) -> Snapshot:
        """What was measured since the last look."""

    def enact(self, decision: Decision) -> str:
        """Begin a change: `up`, `down`, `rebalance`, or nothing if there is nothing to change."""

    def sample(self) -> Sample: ...


class Steering:
    """Asks a policy at each interval, and does what it says."""

    def __init__(self, env: simpy.Environment, plant: Plant, policy: Policy, story: Story) -> None:
        self.env, self.plant, self.policy, self.story = env, plant, policy, story
        self.past: list[Entry] = []

    def run(self, first_s: float, interval_s: float) -> Generator[simpy.Event, Any, None]:
        yield self.env.timeout(first_s)
        while True:
            if self.plant.measured_s > 0:
                snapshot = self.plant.observe()
                self._see_what_came_of_it(gauge(snapshot))
                self._record(snapshot, self._decide(snapshot, tuple(self.past)))
            yield self.env.timeout(interval_s)

    def _decide(self, snapshot: Snapshot, past: Past) -> Verdict:
        if isinstance(self.policy, Stable):
            verdict = self.policy.consider(snapshot, past)
        else:
            wanted = self.policy(snapshot, past)
            verdict = Verdict(wanted, wanted)
        if self.plant.busy and not isinstance(verdict.decision, Hold):
            veto = f"{self.plant.busy} is under way"
            return Verdict(verdict.wanted, Hold(veto), (*verdict.vetoes, veto))
        return verdict

    def _record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        decision, step = verdict.decision, ""
        if not isinstance(decision, Hold):
            step = self.plant.enact(decision)
            decision = decision if step else Hold("it is so already")
        entry = Entry(len(self.past), snapshot.at, verdict.wanted, decision, verdict.vetoes, gauge(snapshot))
        self.past.append(entry)
        if step or _reason(self.past[-2:-1]) != decision.reason:
            said = f"scale to {decision.workers}" if isinstance(decision, Scale) else type(decision).__name__.lower()
            self.story.tell(
                self.env.now,
                DECISION,
                said,
                step=step,
                reason=decision.reason,
                vetoes=list(verdict.vetoes),
                parallelism=dict(decision.parallelism) if isinstance(decision, Scale) else {},
            )

    def _see_what_came_of_it(self, after: AppState) -> None:
        """The last change is over, and the app has run on for a while: did it help?"""
        if self.plant.busy:
            return
        for i in range(len(self.past) - 1, -1, -1):
            entry = self.past[i]
            if isinstance(entry.decision, Hold):
                continue
            if entry.ended_at is None:
                self.past[i] = replace(entry, ended_at=self.env.now, outcome="done")
            elif entry.after is None:
                did = None if entry.gauge is None else helped(entry.decision, entry.gauge, after)
                self.past[i] = replace(entry, after=after, helped=did)
            return


def _reason(entries: list[Entry]) -> str:
    return entries[0].decision.reason if entries else ""

"""What keeps a policy steady: it is told of the room it should leave, and some of what it wants is vetoed."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from springtide.errors import BadValue
from springtide.metrics.snapshot import STEADY, BadSnapshot, Snapshot
from springtide.policies.decision import Decision, Hold, Scale, action
from springtide.policies.limits import Limits
from springtide.policies.load import sheds, slots_a_worker, taken, utilisation
from springtide.policies.past import Entry, Past, enacted
from springtide.policies.policy import Policy
from springtide.policies.time_of_day import Period
from springtide.policies.words import count, percent, plural

CHANGING = "the load is just changing"
LOOKS = 2
"""How often in a row a load that is just changing is looked at once more."""


@dataclass(frozen=True)
class Stability:
    """How steady an app is kept."""

    target_utilisation: float = 0.7
    """The share of its slots' time that an app should spend on rows; the rest is room for bursts."""
    band: float = 0.2
    """No scaling while the utilisation is this near to its target."""
    stabilise_s: float = 30.0
    """After a change, the time without another one."""
    scale_down_s: float = 120.0
    """Scale in only to the highest number of workers that was wanted during this time."""
    catch_up_s: float = 60.0
    """The time in which a backlog should be gone, also the one that the pause of a migration leaves."""
    ineffective_s: float = 600.0
    """After more workers that did not help, the time without a try of still more."""
    limits: Limits = field(default_factory=Limits)
    excluded: tuple[str, ...] = ()
    """Times of day without a change, in UTC, such as `22:00-06:00`."""
    dry_run: bool = False
    """Decide, and change nothing."""

    def __post_init__(self) -> None:
        if not 0 < self.target_utilisation <= 1:
            raise BadValue(f"target_utilisation: expected more than 0 and at most 1, got {self.target_utilisation}")
        if not 0 <= self.band < 1:
            raise BadValue(f"band: expected 0 or more and less than 1, got {self.band}")
        if not self.catch_up_s > 0:
            raise BadValue(f"catch_up_s: expected more than 0 seconds, got {self.catch_up_s}")
        for name in ("stabilise_s", "scale_down_s", "ineffective_s"):
            if not getattr(self, name) >= 0:
                raise BadValue(f"{name}: expected 0 seconds or more, got {getattr(self, name)}")
        object.__setattr__(self, "excluded", tuple(self.excluded))
        for text in self.excluded:
            Period.parse(text)


@dataclass(frozen=True)
class Verdict:
    """What the policy wanted, what shall be done, and why that is not the same."""

    wanted: Decision
    decision: Decision
    vetoes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stable:
    """A policy with guards around it; itself a policy."""

    policy: Policy
    config: Stability = field(default_factory=Stability)

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        return self.consider(snapshot, past).decision

    def consider(self, snapshot: Snapshot, past: Past) -> Verdict:
        """Ask the policy, then the guards. Nothing is decided from a snapshot that is not all numbers."""
        unusable = _unusable(snapshot)
        if unusable:
            hold = Hold(unusable, warning=True)
            return Verdict(hold, hold)
        wanted = self.policy(self.demanding(snapshot), past)
        decision, notes = self._adjusted(wanted, snapshot, past)
        if isinstance(decision, Hold):
            return Verdict(wanted, decision, notes)
        vetoes = (*notes, *self._refusals(wanted, decision, snapshot, past))
        if vetoes == notes:
            return Verdict(wanted, decision, notes)
        return Verdict(wanted, Hold(f"{action(decision)} is vetoed: {'; '.join(vetoes)}"), vetoes)

    def demanding(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with rates at which the target is kept and a backlog caught up with.

        The backlog is that of now, and that of a pause as long as the longest this app's migrations took.
        """
        config = self.config
        factor = 1 / config.target_utilisation + snapshot.pause_s / config.catch_up_s
        sources = (replace(s, rate=s.rate * factor + s.lag_rows / config.catch_up_s) for s in snapshot.sources)
        return replace(snapshot, sources=tuple(sources))

    def _adjusted(self, wanted: Decision, snapshot: Snapshot, past: Past) -> tuple[Decision, tuple[str, ...]]:
        """What is wanted, but within the limits and not let go too soon; and the difference in words."""
        limits, slots, present = self.config.limits, slots_a_worker(snapshot), len(snapshot.workers)
        if not isinstance(wanted, Scale):
            outside = self._outside(snapshot)
            return (Scale(limits.clamp(present, slots), outside), (outside,)) if outside else (wanted, ())
        later, delay = self._delayed(wanted, snapshot, past)
        bounded, bound = limits.apply(later, slots)
        notes = tuple(filter(None, (delay, bound)))
        if bounded.workers == present:
            return Hold("; ".join(notes) or f"on {plural(present, 'worker')} already"), notes
        return bounded, notes

    def _outside(self, snapshot: Snapshot) -> str:
        """Says so if the present number of workers is not allowed."""
        present = len(snapshot.workers)
        allowed = self.config.limits.clamp(present, slots_a_worker(snapshot))
        return f"the limits ask for {plural(allowed, 'worker')}, not {present}" if allowed != present else ""

    def _delayed(self, wanted: Scale, snapshot: Snapshot, past: Past) -> tuple[Scale, str]:
        """Fewer workers only as far as nothing else was wanted for a while."""
        present = len(snapshot.workers)
        if wanted.workers >= present or self.config.scale_down_s == 0:
            return wanted, ""
        since = snapshot.at - self.config.scale_down_s
        at, most = max(_recommended(past, since, present), key=lambda found: found[1])
        if most <= wanted.workers:
            return wanted, ""
        ago, window = count(snapshot.at - at), count(self.config.scale_down_s)
        note = f"{plural(most, 'worker')} wanted {ago} s ago; workers are let go {window} s after that"
        return replace(wanted, workers=min(most, present)), note

    def _refusals(self, wanted: Decision, decision: Decision, snapshot: Snapshot, past: Past) -> Iterator[str]:
        """Why it must not be done now, each reason there is."""
        if self.config.dry_run:
            yield "dry run"
        yield from self._excluded(snapshot.at)
        yield from self._unsettled(snapshot.at, past)
        if isinstance(decision, Scale) and not self._outside(snapshot):
            grows = decision.workers > len(snapshot.workers)
            if not (grows and sheds(snapshot)):  # Rows that are shed tell of too little room.
                yield from self._in_band(snapshot)
            yield from _unsteady(wanted, snapshot, past)
            if grows:
                yield from self._ineffective(snapshot.at, past)

    def _excluded(self, at: float) -> Iterator[str]:
        for period in map(Period.parse, self.config.excluded):
            if period.covers(at):
                yield f"no changes in the period {period}"

    def _unsettled(self, at: float, past: Past) -> Iterator[str]:
        last = next(enacted(past), None)
        if last is None:
            return
        rested_s = at - (last.at if last.ended_at is None else last.ended_at)
        if rested_s < self.config.stabilise_s:
            needed = count(self.config.stabilise_s)
            yield f"{action(last.decision)} was {count(max(0.0, rested_s))} s ago; it settles for {needed} s"

    def _in_band(self, snapshot: Snapshot) -> Iterator[str]:
        low, high = (self.config.target_utilisation + sign * self.config.band for sign in (-1, 1))
        used = _needed_utilisation(snapshot, self.config.catch_up_s)
        if used is not None and low <= used <= high:
            yield f"utilisation {percent(used)} is within {percent(low)} to {percent(high)}"

    def _ineffective(self, at: float, past: Past) -> Iterator[str]:
        tried = next((e for e in enacted(past) if _grew(e) and e.helped is not None), None)
        if tried is not None and not tried.helped and at - tried.at < self.config.ineffective_s:
            again = count(self.config.ineffective_s - (at - tried.at))
            yield f"{action(tried.decision)} did not help; more workers are not tried for another {again} s"


def _unsteady(wanted: Decision, snapshot: Snapshot, past: Past) -> Iterator[str]:
    """A load that is just changing is looked at once more, and again if something else is wanted then, or more comes.

    One that goes on changing is followed: soon rather than exactly.
    """
    looked = list(takewhile(_was_changing, reversed(past)))
    if len(looked) >= LOOKS or (looked and _same(looked[0], wanted, snapshot)):
        return
    for source in snapshot.sources:
        if not source.steady and source.rate_before is not None:
            change = f"{count(source.rate_before)} to {count(source.rate)} rows/s"
            yield f"{CHANGING} at {source.name!r}, from {change}; it is looked at once more"


def _was_changing(entry: Entry) -> bool:
    return any(veto.startswith(CHANGING) for veto in entry.vetoes)


def _same(before: Entry, wanted: Decision, snapshot: Snapshot) -> bool:
    """Whether as many workers are wanted as before, for about the same load.

    The same number may be wanted for a part of a step and for a little more of it, and another one for the whole.
    """
    as_many = isinstance(before.wanted, Scale) and isinstance(wanted, Scale) and before.wanted.workers == wanted.workers
    was = snapshot.arriving if before.gauge is None else before.gauge.arriving
    return as_many and abs(snapshot.arriving - was) <= STEADY * max(snapshot.arriving, was)


def _unusable(snapshot: Snapshot) -> str:
    """Why nothing can be decided from a snapshot; empty if something can."""
    try:
        snapshot.check()
    except BadSnapshot as bad:
        return f"nothing can be decided: {bad}"
    return "" if snapshot.workers else "nothing can be decided: there are no workers"


def _recommended(past: Past, since: float, present: int) -> Iterator[tuple[float, int]]:
    """When, and how many workers were wanted since then, newest first; what was wanted last before holds on.

    To hold, or to rebalance, is to want as many as there were. Of the time before the past began nothing is
    known, and all are kept.
    """
    for entry in reversed(past):
        at = max(entry.at, since)
        if isinstance(entry.wanted, Scale):
            yield at, entry.wanted.workers
        else:
            yield at, present if entry.gauge is None else entry.gauge.workers
        if entry.at <= since:
            return
    yield since, present


def _needed_utilisation(snapshot: Snapshot, catch_up_s: float) -> float | None:
    """The share of slots' time that would go to rows if all that are due were taken; None if it can't be told."""
    due = snapshot.arriving + snapshot.lag_rows / catch_up_s
    processed = snapshot.arriving * taken(snapshot)
    if processed > 0:
        return utilisation(snapshot) * due / processed
    return None if due > 0 else 0.0


def _grew(entry: Entry) -> bool:
    decision, before = entry.decision, entry.gauge
    return isinstance(decision, Scale) and before is not None and decision.workers > before.workers

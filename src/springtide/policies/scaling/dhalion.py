"""Dhalion: symptoms, what they come from, and one small cure at a time.

| symptom | diagnosis | cure |
| --- | --- | --- |
| back-pressure, and an instance with far more rows than its siblings | skew | move slices off its worker |
| back-pressure, and an instance far slower than its siblings with as many rows | slow worker | move slices off it |
| back-pressure | too few instances of the bottleneck | some more of this one operator |
| no backlog, and slots that are idle for the most part | too many workers | one less |

Each cure is a guess; what came of it is seen later. One that did not help is not tried again for a while.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from springtide.errors import BadValue
from springtide.metrics.snapshot import Instance, Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance, Scale, action
from springtide.policies.even_out import evened
from springtide.policies.load import slots_a_worker, taken, utilisation
from springtide.policies.past import Entry, Past, enacted
from springtide.policies.words import count, percent, plural

NEARLY = 0.95
"""An operator that is busy for this share of the busiest one's time is a bottleneck as well."""


@dataclass(frozen=True)
class Dhalion:
    """When a symptom counts, and how bold a cure is."""

    late_s: float = 10.0
    """Rows published this long after they were due mean back-pressure."""
    growth: float = 0.05
    """So does a backlog, more than two epochs' rows, that grows by this share of the rows that fall due."""
    skewed: float = 2.0
    """An instance is hot if it has this many times the rows of its siblings."""
    slow: float = 0.5
    """An instance at this share of its siblings' true rate is slow."""
    similar: float = 0.25
    """As many rows: not more of a difference than this share."""
    idle: float = 0.4
    """Workers are too many if the utilisation is below."""
    boldest: float = 2.0
    """The most by which the instances are multiplied in one step."""
    blocked_s: float = 600.0
    """How long a cure that did not help is not tried again."""

    def __post_init__(self) -> None:
        if not self.skewed > 1 or not self.boldest > 1:
            raise BadValue(f"skewed and boldest: expected more than 1, got {self.skewed} and {self.boldest}")
        if not (0 < self.slow < 1 and 0 <= self.idle < 1):
            raise BadValue(f"slow and idle: expected shares between 0 and 1, got {self.slow} and {self.idle}")

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        if not snapshot.workers:
            return Hold("there are no workers", warning=True)
        symptom = self._back_pressure(snapshot, past)
        if symptom:
            return self._untried(self._cures(snapshot, symptom), symptom, snapshot, past)
        used = utilisation(snapshot)
        if len(snapshot.workers) > 1 and used < self.idle and not self._backlog(snapshot):
            return self._untried(iter([self._fewer(snapshot, used)]), "too many workers", snapshot, past)
        return Hold(f"no back-pressure, and slots are busy for {percent(used)} of the time")

    def _back_pressure(self, snapshot: Snapshot, past: Past) -> str:
        """The symptom in words; empty if it is not there."""
        if snapshot.lag_s > self.late_s:
            return f"rows are published {snapshot.lag_s:.1f} s after they were due"
        before = next(((e.at, e.gauge.lag_rows) for e in reversed(past) if e.gauge), None)
        if before is None:
            return ""
        at, rows = before
        grown = snapshot.lag_rows - rows
        due = snapshot.arriving * (snapshot.at - at)
        growing = due > 0 and grown > self.growth * due and self._backlog(snapshot)
        return f"the backlog grew by {count(grown)} rows" if growing else ""

    def _backlog(self, snapshot: Snapshot) -> bool:
        """More rows wait than fall due in two epochs: one that runs, and one that gathers."""
        return snapshot.lag_rows > 2 * snapshot.epoch_s * snapshot.arriving

    def _cures(self, snapshot: Snapshot, symptom: str) -> Iterator[Decision]:
        """The likeliest first."""
        busy = {
            name: sum(i.useful_s for i in instances) / (len(instances) * (snapshot.window_s or 1))
            for name, instances in snapshot.operators.items()
        }
        busiest = sorted(busy, key=lambda name: -busy[name])
        for name in busiest:
            instances = snapshot.operators[name]
            for found, why in ((self._hot(instances), "skew"), (self._slow(instances), "a slow worker")):
                if found is not None:
                    yield from evened(snapshot, name, found.worker, f"{symptom}; {why}: {_compared(found, instances)}")
        for name in busiest:
            if busy[name] > 0 and busy[name] >= NEARLY * busy[busiest[0]]:
                yield self._more(snapshot, name, f"{symptom}; {name} is the bottleneck, busy for {percent(busy[name])}")

    def _hot(self, instances: Sequence[Instance]) -> Instance | None:
        """An instance that got far more rows than its siblings, or has far more waiting, and that for over a second."""
        if len(instances) < 2:
            return None
        most = max(instances, key=lambda i: i.records_in)
        if most.records_in > self.skewed * median(i.records_in for i in instances if i is not most):
            return most
        most = max(instances, key=lambda i: i.queue_rows)
        others = median(i.queue_rows for i in instances if i is not most)
        return most if most.queue_rows > max(self.skewed * others, most.true_rate) else None

    def _slow(self, instances: Sequence[Instance]) -> Instance | None:
        known = [i for i in instances if i.true_rate > 0]
        if len(known) < 2:
            return None
        slowest = min(known, key=lambda i: i.true_rate)
        rows = median(i.records_in for i in known if i is not slowest)
        rate = median(i.true_rate for i in known if i is not slowest)
        alike = abs(slowest.records_in - rows) <= self.similar * rows
        return slowest if alike and slowest.true_rate <= self.slow * rate else None

    def _more(self, snapshot: Snapshot, operator: str, why: str) -> Scale:
        """More of one operator: by the time that rows were held back for each time that they were not."""
        served = max(min(taken(snapshot), 1.0), 1 / self.boldest)
        present = len(snapshot.operators[operator])
        wanted = max(present + 1, math.ceil(present / served))
        workers = len(snapshot.workers) + math.ceil((wanted - present) / slots_a_worker(snapshot))
        held = percent(max(0.0, 1 - taken(snapshot)))
        grown = f"{held} of its rows are held back; {wanted} instead of {plural(present, 'instance')}"
        return Scale(workers, f"{why}; {grown}, on {plural(workers, 'worker')}", {operator: wanted})

    def _fewer(self, snapshot: Snapshot, used: float) -> Scale:
        """One worker less, and its slots less for the operator that uses its own least."""
        workers = len(snapshot.workers) - 1
        why = f"no backlog, and slots are busy for {percent(used)} of the time; {plural(workers, 'worker')} will do"
        several = {name: some for name, some in snapshot.operators.items() if len(some) > 1}
        if not several:
            return Scale(workers, why)
        least = min(several, key=lambda name: sum(i.useful_s for i in several[name]) / len(several[name]))
        return Scale(workers, why, {least: max(1, len(several[least]) - round(slots_a_worker(snapshot)))})

    def _untried(self, cures: Iterator[Decision], symptom: str, snapshot: Snapshot, past: Past) -> Decision:
        """The first cure that is not blocked."""
        recent = [e for e in enacted(past) if snapshot.at - e.at < self.blocked_s]
        refused = []
        for cure in cures:
            failed = _failed(recent, cure, len(snapshot.workers))
            if failed is None:
                return cure
            refused.append(f"{action(failed.decision)} did not help {count(snapshot.at - failed.at)} s ago")
        return Hold("; ".join([symptom, *refused]) + "; nothing is left to try", warning=True)


def _failed(recent: Sequence[Entry], cure: Decision, workers: int) -> Entry | None:
    """The last try of a cure, newest first, if it did not help.

    More of one operator can't help while another one is just as short; once more of that one helped, it may.
    """
    for entry in recent:
        if _alike(entry, cure, workers):
            if entry.helped is False:
                return entry
        elif entry.helped and _grows(cure, workers) and _grows(entry.decision, _before(entry, workers)):
            return None
    return None


def _alike(entry: Entry, cure: Decision, workers: int) -> bool:
    """Whether a cure is for the same diagnosis as an earlier one, and of the same kind."""
    tried = entry.decision
    if isinstance(tried, Scale) and isinstance(cure, Scale):
        same_way = _grows(tried, _before(entry, workers)) == _grows(cure, workers)
        return same_way and tried.parallelism.keys() == cure.parallelism.keys()
    if isinstance(tried, Rebalance) and isinstance(cure, Rebalance):
        return (tried.operator, tried.source) == (cure.operator, cure.source)
    return False


def _grows(decision: Decision, workers: int) -> bool:
    return isinstance(decision, Scale) and decision.workers > workers


def _before(entry: Entry, workers: int) -> int:
    """The workers at that time; as many as now if that is not known."""
    return workers if entry.gauge is None else entry.gauge.workers


def _compared(one: Instance, instances: Sequence[Instance]) -> str:
    """An instance beside its siblings."""
    rows = median(i.records_in for i in instances if i is not one)
    rate = median(i.true_rate for i in instances if i is not one)
    return (
        f"instance {one.number} of {one.operator} had {count(one.records_in)} rows at {count(one.true_rate)} rows/s, "
        f"its siblings {count(rows)} at {count(rate)}"
    )

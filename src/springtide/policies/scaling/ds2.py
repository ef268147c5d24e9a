"""DS2: the parallelism that sustains the sources, for the whole graph in one pass.

A *true* rate is what an instance would do if it never waited. From the true rates of all instances and the
rates of the sources follows what reaches each operator once those before it keep up, and so how many instances
it needs. Where operators scale linearly one step is enough; where they scale a little worse, up to three are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springtide.metrics.snapshot import Instance, Snapshot
from springtide.policies.decision import Decision, Hold, Scale
from springtide.policies.load import slots_a_worker
from springtide.policies.past import Past
from springtide.policies.words import count, plural

NOISE = 1e-9
"""What adding up measured times may be off by: 4.000000001 instances are 4."""
NAMED = 3
"""Operators that a reason tells of, those that need most first."""


@dataclass(frozen=True)
class Rates:
    """The true rates of an operator, added up over those of its instances that had rows."""

    measured: int
    """Instances that had rows."""
    processed: float
    """Rows a second."""
    pushed: float
    """Rows a second."""

    @classmethod
    def of(cls, instances: Sequence[Instance]) -> "Rates":
        known = [i for i in instances if i.true_rate > 0]
        return cls(len(known), sum(i.true_rate for i in known), sum(i.true_output_rate for i in known))

    @property
    def selectivity(self) -> float:
        """Rows pushed for each one processed."""
        return self.pushed / self.processed if self.processed > 0 else 0.0


@dataclass(frozen=True)
class Need:
    """What one operator needs."""

    operator: str
    present: int
    """Its instances now."""
    rate: float
    """Rows a second that reach it once all operators before it keep up."""
    each: float
    """Rows a second that one of its instances can process; 0 if that was not measured."""

    @property
    def measured(self) -> bool:
        return self.each > 0

    @property
    def instances(self) -> float:
        """Instances, or slots that it keeps busy all the time; none for an operator without measurement."""
        return self.rate / self.each if self.measured else 0.0

    @property
    def parallelism(self) -> int:
        """Whole instances; as many as now if there is no measurement."""
        return max(1, whole(self.instances)) if self.measured else self.present

    def __str__(self) -> str:
        needed = f"{self.instances:.1f} instances"
        return f"{self.operator} needs {needed} for {count(self.rate)} rows/s at {count(self.each)} rows/s each"


@dataclass(frozen=True)
class Ds2:
    """As many workers as the needs of all operators fill: on Spark, operators share slots in time.

    An operator without measurement keeps its parallelism, and workers are not let go while rows wait for it.
    """

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        if not snapshot.workers:
            return Hold("there are no workers", warning=True)
        needed = needs(snapshot)
        if not any(need.measured for need in needed.values()):
            return Hold("no operator had rows: there is nothing to go by")
        present, workers = len(snapshot.workers), self._workers(snapshot, needed)
        reason = _reason(needed, workers, slots_a_worker(snapshot))
        if workers == present:
            return Hold(f"on target: {reason}")
        return Scale(workers, reason, {name: need.parallelism for name, need in needed.items()})

    def _workers(self, snapshot: Snapshot, needed: Mapping[str, Need]) -> int:
        busy = sum(need.instances for need in needed.values())
        fitting = max(1, whole(busy / slots_a_worker(snapshot)))
        waiting = any(need.rate > 0 and not need.measured for need in needed.values())
        return max(fitting, len(snapshot.workers)) if waiting else fitting


def needs(snapshot: Snapshot) -> dict[str, Need]:
    """By operator, upstream first: what it needs."""
    pushed = {source.name: source.rate for source in snapshot.sources}
    needed = {}
    for name, instances in snapshot.operators.items():
        rates = Rates.of(instances)
        rate = sum(pushed.get(edge.upstream, 0.0) * edge.ratio for edge in snapshot.parents(name))
        pushed[name] = rates.selectivity * rate
        each = rates.processed / rates.measured if rates.measured else 0.0
        needed[name] = Need(name, len(instances), rate, each)
    return needed


def whole(needed: float) -> int:
    """The least whole number that is enough."""
    return math.ceil(needed * (1 - NOISE))


def _reason(needed: Mapping[str, Need], workers: int, slots: float) -> str:
    known = sorted((n for n in needed.values() if n.measured), key=lambda n: -n.instances)
    parts = [str(need) for need in known[:NAMED]]
    if len(known) > NAMED:
        parts.append(f"{plural(len(known) - NAMED, 'other')} need {sum(n.instances for n in known[NAMED:]):.1f}")
    unknown = [need.operator for need in needed.values() if not need.measured]
    if unknown:
        parts.append(f"without measurement and left as they are: {', '.join(unknown)}")
    total = sum(need.instances for need in known)
    parts.append(f"{total:.1f} slots in all: {plural(workers, 'worker')} of {plural(slots, 'slot')}")
    return "; ".join(parts)

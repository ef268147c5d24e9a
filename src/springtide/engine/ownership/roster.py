"""The roster: who works, who owns what and who stands by. Changed between epochs, one change at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from springtide.blocks.manifest import Manifest
from springtide.engine.executors.cluster import Cluster
from springtide.engine.ownership.standby import Standbys
from springtide.ids import Epoch, SliceId, WorkerId
from springtide.plan.plan import Plan
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker

Owners = dict[str, list[WorkerId]]
Replicas = dict[str, list[tuple[WorkerId, ...]]]


@dataclass
class Roster:
    """The plan and the ring behind it. Threads have it through a SharedRoster, which gives it to one at a time."""

    cluster: Cluster
    standbys: Standbys
    ring: Ring
    plan: Plan
    replicas: int
    """How many workers stand by for each slice."""
    wanted: int
    """How many workers there should be."""
    hurry: Callable[[], None] = lambda: None
    """Somebody waits for a peer checkpoint."""
    head: Manifest | None = None
    """The last epoch that is true."""
    begun: Epoch | None = None
    """The last epoch that has begun."""
    served: Plan | None = None
    """The plan under which it was committed; None before the first epoch of this driver."""
    leaving: set[WorkerId] = field(default_factory=set)
    """Workers that are let go once nothing is on them."""

    def staying(self) -> list[Worker]:
        """The workers of the plan that are not about to be let go."""
        return [w for w in self.plan.workers if w.id not in self.leaving]

    def lost(self) -> frozenset[WorkerId]:
        """The workers of the plan that Spark does not know any more."""
        return frozenset(w.id for w in self.plan.workers) - self.cluster.alive()

    def still_new(self, workers: Sequence[Worker], warm: frozenset[WorkerId]) -> list[Worker]:
        """Those who have become warm, and whom a recovery has not taken on meanwhile."""
        return [w for w in workers if w.id in warm and self.plan.worker(w.id) is None]

    def owners(self) -> Owners:
        """By step and slice: the owner, to be changed and handed back."""
        return {step: list(share.owners) for step, share in self.plan.operators.items()}

    def standing_by(self) -> Replicas:
        """By step and slice: who stands by, to be changed and handed back."""
        none: list[tuple[WorkerId, ...]] = [()] * self.plan.slices
        return {step: list(share.replicas or none) for step, share in self.plan.operators.items()}

    def ready(self) -> dict[tuple[str, WorkerId], frozenset[SliceId]]:
        """By step and worker: the slices that it could own from the next epoch on."""
        every = [(step, w.id) for step in self.plan.operators for w in self.plan.workers]
        if self.head is None:
            return dict.fromkeys(every, frozenset())
        return {(step, worker): self.standbys.ready(step, worker, self.head.epoch) for step, worker in every}

    def change(
        self,
        owners: Mapping[str, Sequence[WorkerId]],
        replicas: Replicas,
        workers: tuple[Worker, ...] | None = None,
        *,
        keep_stalled: bool = False,
    ) -> None:
        """Another plan, unless it is the same; stalled slices are let go unless it says so."""
        stalled = {step: share.stalled for step, share in self.plan.operators.items()} if keep_stalled else None
        changed = self.plan.next(owners, replicas, workers, stalled)
        if (changed.workers, changed.operators) != (self.plan.workers, self.plan.operators):
            self.plan = changed

    def widen(self) -> None:
        """Those who should stand by begin to; those who do already go on until the others are ready."""
        replicas, desired = self.standing_by(), self._desired()
        for step in replicas:
            both = zip(desired[step], replicas[step], strict=True)
            replicas[step] = [tuple(dict.fromkeys((*wanted, *now))) for wanted, now in both]
        self.change(self.owners(), replicas)

    def settle(self) -> set[WorkerId]:
        """Replicas as the ring has them; returns the workers that nobody needs any more, and who are to be let go."""
        desired = self._desired()
        if self.standing_by() != desired:
            self.widen()
            if self._all_ready(desired):
                self.change(self.owners(), desired)
            else:
                self.hurry()
        idle = self._idle()
        if idle:
            self.leaving -= idle
            staying = tuple(w for w in self.plan.workers if w.id not in idle)
            self.change(self.owners(), self.standing_by(), staying)
            self.standbys.lost(idle)
        return idle

    def unsettled(self) -> bool:
        """Whether `settle` would change something now."""
        desired, now = self._desired(), self.standing_by()
        if desired == now:
            return bool(self._idle())
        lacking = any(set(w) - set(n) for step in now for w, n in zip(desired[step], now[step], strict=True))
        return lacking or self._all_ready(desired)

    def _all_ready(self, desired: Replicas) -> bool:
        ready = self.ready()
        return all(s in ready[step, w] for step in desired for s, ws in enumerate(desired[step]) for w in ws)

    def _idle(self) -> set[WorkerId]:
        """Workers that are to go, and have nothing any more."""
        return self.leaving - {w for share in self.plan.operators.values() for w in share.worker_of}

    def _desired(self) -> Replicas:
        return {
            step: ring_replicas(self.ring, share.owners, self.replicas) for step, share in self.plan.operators.items()
        }


def ring_replicas(ring: Ring, owners: Sequence[WorkerId], r: int) -> list[tuple[WorkerId, ...]]:
    """By slice: who should stand by, clockwise on the ring."""
    found = []
    for number, owner in enumerate(owners):
        around = (ring.owner(number), *ring.replicas(number, r + 1))
        found.append(tuple(w for w in dict.fromkeys(around) if w != owner)[:r])
    return found

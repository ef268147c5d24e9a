"""A plan says which worker owns each slice, which ones stand by, and how many instances run where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from springtide.errors import BadValue
from springtide.ids import InstanceId, PlanVersion, SliceId, WorkerId
from springtide.plan.worker import Worker


class InvalidPlan(BadValue):
    """A plan that leaves a slice without an owner, or names a worker it does not have."""


@dataclass(frozen=True)
class OperatorPlan:
    """One keyed operator: the instance of each slice, the worker of each instance, the replicas of each slice."""

    instance_of: tuple[InstanceId, ...]
    worker_of: tuple[WorkerId, ...]
    replicas: tuple[tuple[WorkerId, ...], ...] = ()
    """By slice: the workers that stand by with a copy, the first to take over first. Empty: none for any slice."""
    stalled: frozenset[SliceId] = frozenset()
    """Slices whose rows are kept for later."""

    @property
    def instances(self) -> int:
        return len(self.worker_of)

    def slices_of(self, instance: InstanceId) -> tuple[SliceId, ...]:
        return tuple(SliceId(s) for s, i in enumerate(self.instance_of) if i == instance)

    @property
    def owners(self) -> tuple[WorkerId, ...]:
        """By slice: the worker that owns it."""
        return tuple(self.worker_of[i] for i in self.instance_of)

    def replicas_of(self, slice_id: int) -> tuple[WorkerId, ...]:
        return self.replicas[slice_id] if self.replicas else ()

    def standby(self, worker: WorkerId) -> frozenset[SliceId]:
        """The slices that a worker stands by for."""
        return frozenset(SliceId(s) for s, workers in enumerate(self.replicas) if worker in workers)

    def owned(self, worker: WorkerId) -> frozenset[SliceId]:
        """The slices that a worker owns."""
        return frozenset(SliceId(s) for s, owner in enumerate(self.owners) if owner == worker)


@dataclass(frozen=True)
class Plan:
    """One version for a whole epoch; a new plan is a new value."""

    version: PlanVersion
    slices: int
    workers: tuple[Worker, ...]
    operators: Mapping[str, OperatorPlan]

    def __post_init__(self) -> None:
        for name, operator in self.operators.items():
            self._check(name, operator)

    def _check(self, name: str, operator: OperatorPlan) -> None:
        known = {worker.id for worker in self.workers}
        if len(operator.instance_of) != self.slices:
            raise InvalidPlan(f"step {name!r}: {len(operator.instance_of)} slices owned, {self.slices} exist")
        strangers = {*operator.worker_of, *(w for workers in operator.replicas for w in workers)} - known
        if strangers:
            raise InvalidPlan(f"step {name!r}: workers {sorted(strangers)} are not in the plan")
        beyond = {i for i in operator.instance_of if not 0 <= i < operator.instances}
        if beyond:
            raise InvalidPlan(f"step {name!r}: slices owned by instances {sorted(beyond)} that do not exist")
        if operator.replicas and len(operator.replicas) != self.slices:
            raise InvalidPlan(f"step {name!r}: replicas for {len(operator.replicas)} slices, {self.slices} exist")
        for number, (owner, replicas) in enumerate(zip(operator.owners, operator.replicas, strict=False)):
            if owner in replicas or len(set(replicas)) != len(replicas):
                raise InvalidPlan(
                    f"step {name!r}: slice {number} of worker {owner!r} has replicas {list(replicas)}; "
                    "expected different workers, the owner not among them"
                )

    def worker(self, worker: WorkerId) -> Worker | None:
        """A worker of the plan by its id."""
        return next((w for w in self.workers if w.id == worker), None)

    def next(
        self,
        owners: Mapping[str, Sequence[WorkerId]],
        replicas: Mapping[str, Sequence[tuple[WorkerId, ...]]],
        workers: tuple[Worker, ...] | None = None,
        stalled: Mapping[str, frozenset[SliceId]] | None = None,
    ) -> "Plan":
        """The plan after this one, with other owners and replicas; nothing is stalled unless it says so."""
        workers = self.workers if workers is None else workers
        operators = {
            name: replace(assign(owners[name], replicas[name], workers), stalled=(stalled or {}).get(name, frozenset()))
            for name in self.operators
        }
        return replace(self, version=PlanVersion(self.version + 1), workers=workers, operators=operators)


def assign(
    owners: Sequence[WorkerId], replicas: Sequence[tuple[WorkerId, ...]], workers: Sequence[Worker]
) -> OperatorPlan:
    """Instances for these owners: as many on a worker as it has slots, each with one share of its slices.

    A worker that owns nothing and only stands by has one instance, which takes in its backups.
    """
    instance_of: dict[int, InstanceId] = {}
    worker_of: list[WorkerId] = []
    busy = {w for some in replicas for w in some}
    for worker in workers:
        mine = [s for s, owner in enumerate(owners) if owner == worker.id]
        count = min(worker.slots, len(mine)) or (1 if worker.id in busy else 0)
        first = len(worker_of)
        worker_of += [worker.id] * count
        for number, slice_id in enumerate(mine):
            instance_of[slice_id] = InstanceId(first + number * count // len(mine))
    missing = [s for s in range(len(owners)) if s not in instance_of]
    if missing:
        strangers = sorted({owners[s] for s in missing})
        raise InvalidPlan(f"slices {missing} are owned by workers {strangers}, which are not in the plan")
    return OperatorPlan(
        tuple(instance_of[s] for s in range(len(owners))),
        tuple(worker_of),
        tuple(replicas) if any(replicas) else (),
    )


def even_plan(
    operators: tuple[str, ...], *, slices: int, instances: int, worker: WorkerId, version: PlanVersion
) -> Plan:
    """Every operator spread evenly over instances on one worker; each owns one arc of the ring."""
    share = OperatorPlan(
        tuple(InstanceId(s * instances // slices) for s in range(slices)),
        (worker,) * instances,
    )
    return Plan(version, slices, (Worker(worker, slots=max(instances, 1)),), dict.fromkeys(operators, share))

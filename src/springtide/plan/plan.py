"""A plan says how many instances each keyed operator has, which slices each one owns, and where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from springtide.ids import InstanceId, PlanVersion, SliceId, WorkerId


class InvalidPlan(ValueError):
    """A plan that leaves a slice without an owner, or names a worker it does not have."""


@dataclass(frozen=True)
class OperatorPlan:
    """One keyed operator: the instance of each slice, and the worker of each instance."""

    instance_of: tuple[InstanceId, ...]
    worker_of: tuple[WorkerId, ...]

    @property
    def instances(self) -> int:
        return len(self.worker_of)

    def slices_of(self, instance: InstanceId) -> tuple[SliceId, ...]:
        return tuple(SliceId(s) for s, i in enumerate(self.instance_of) if i == instance)


@dataclass(frozen=True)
class Plan:
    """One version for a whole epoch; a new plan is a new value."""

    version: PlanVersion
    slices: int
    workers: tuple[WorkerId, ...]
    operators: Mapping[str, OperatorPlan]

    def __post_init__(self) -> None:
        for name, operator in self.operators.items():
            if len(operator.instance_of) != self.slices:
                raise InvalidPlan(f"step {name!r}: {len(operator.instance_of)} slices owned, {self.slices} exist")
            strangers = set(operator.worker_of) - set(self.workers)
            if strangers:
                raise InvalidPlan(f"step {name!r}: workers {sorted(strangers)} are not in the plan")
            beyond = {i for i in operator.instance_of if not 0 <= i < operator.instances}
            if beyond:
                raise InvalidPlan(f"step {name!r}: slices owned by instances {sorted(beyond)} that do not exist")


def even_plan(
    operators: tuple[str, ...], *, slices: int, instances: int, worker: WorkerId, version: PlanVersion
) -> Plan:
    """Every operator spread evenly over instances on one worker; each owns one arc of the ring."""
    share = OperatorPlan(
        tuple(InstanceId(s * instances // slices) for s in range(slices)),
        (worker,) * instances,
    )
    return Plan(version, slices, (worker,), dict.fromkeys(operators, share))

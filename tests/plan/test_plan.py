"""Plans: every slice has an owner that exists, on a worker that exists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.ids import InstanceId, PlanVersion, WorkerId
from springtide.plan.plan import InvalidPlan, OperatorPlan, Plan, even_plan
from springtide.plan.worker import Worker

A, B = WorkerId("a"), WorkerId("b")


def operator(instance_of: list[int], *workers: WorkerId) -> OperatorPlan:
    return OperatorPlan(tuple(map(InstanceId, instance_of)), workers)


def plan(one: OperatorPlan, *, slices: int = 4) -> Plan:
    return Plan(PlanVersion(1), slices, (Worker(A), Worker(B)), {"fine": operator([0] * slices, A), "counts": one})


def test_a_plan_that_is_complete() -> None:
    made = plan(operator([0, 1, 0, 1], A, B))
    assert made.operators["counts"].instances == 2
    assert made.operators["counts"].slices_of(InstanceId(1)) == (1, 3)


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (operator([0, 0, 0], A), "3 slices owned, 4 exist"),
        (operator([0] * 5, A), "5 slices owned, 4 exist"),
        (operator([], A), "0 slices owned, 4 exist"),
        (operator([0, 0, 0, 1], A), r"instances \[1\] that do not exist"),
        (operator([0, -1, 0, 0], A), r"instances \[-1\] that do not exist"),
        (operator([0, 0, 0, 0]), r"instances \[0\] that do not exist"),
        (operator([0, 0, 0, 0], WorkerId("gone")), r"workers \['gone'\] are not in the plan"),
        (operator([0, 0, 0, 0], A, WorkerId("gone")), r"workers \['gone'\] are not in the plan"),
    ],
)
def test_a_plan_with_a_hole_is_refused_by_the_name_of_the_step(one: OperatorPlan, says: str) -> None:
    with pytest.raises(InvalidPlan, match=f"step 'counts': .*{says}"):
        plan(one)


@given(bits=st.integers(0, 8), instances=st.integers(1, 40))
def test_an_even_plan_gives_each_instance_one_arc_of_nearly_the_same_length(bits: int, instances: int) -> None:
    slices = 1 << bits
    made = even_plan(("x", "y"), slices=slices, instances=instances, worker=A, version=PlanVersion(7))
    assert (made.version, [w.id for w in made.workers], set(made.operators)) == (7, [A], {"x", "y"})
    share = made.operators["x"]
    assert share.instances == instances
    assert list(share.instance_of) == sorted(share.instance_of), "one arc each"
    sizes = [len(share.slices_of(InstanceId(i))) for i in range(instances)]
    assert sum(sizes) == slices
    assert max(sizes) - min(sizes) <= 1


def test_an_even_plan_needs_an_instance() -> None:
    with pytest.raises(InvalidPlan, match="do not exist"):
        even_plan(("x",), slices=4, instances=0, worker=A, version=PlanVersion(1))


def test_plans_are_values() -> None:
    """A new plan is a new value; two that say the same are the same."""
    assert plan(operator([0, 0, 1, 1], A, B)) == plan(operator([0, 0, 1, 1], A, B))
    assert plan(operator([0, 0, 1, 1], A, B)) != plan(operator([0, 0, 1, 1], B, A))
    with pytest.raises(AttributeError):
        plan(operator([0] * 4, A)).version = PlanVersion(2)  # type: ignore[misc]

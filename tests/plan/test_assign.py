"""Assigning owners and replicas to instances, the plan after a plan, and replicas that make no sense."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.ids import InstanceId, PlanVersion, SliceId, WorkerId
from springtide.plan.plan import InvalidPlan, OperatorPlan, Plan, assign, even_plan
from springtide.plan.worker import Worker

A, B, C, D = map(WorkerId, "abcd")
ALL = (A, B, C, D)

few = settings(max_examples=40, deadline=None)


@st.composite
def crews(draw: st.DrawFn) -> tuple[Worker, ...]:
    """Some workers, with one slot or more each."""
    slots = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return tuple(Worker(worker, slots=n) for worker, n in zip(ALL, slots, strict=False))


@st.composite
def placements(draw: st.DrawFn) -> tuple[tuple[Worker, ...], list[WorkerId], list[tuple[WorkerId, ...]]]:
    """Workers, the owner of each slice, and who stands by for it."""
    crew = draw(crews())
    ids = [worker.id for worker in crew]
    owners = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=12))
    order = st.permutations(ids)
    replicas = [tuple(w for w in draw(order) if w != o)[: draw(st.integers(0, 2))] for o in owners]
    return crew, owners, replicas


@few
@given(placements())
def test_every_slice_gets_one_instance_on_its_owner_and_no_worker_more_than_its_slots(
    placed: tuple[tuple[Worker, ...], list[WorkerId], list[tuple[WorkerId, ...]]],
) -> None:
    crew, owners, replicas = placed
    share = assign(owners, replicas, crew)
    Plan(PlanVersion(1), len(owners), crew, {"counts": share})
    assert list(share.owners) == owners
    assert [share.replicas_of(s) for s in range(len(owners))] == replicas
    for worker in crew:
        own = share.owned(worker.id)
        count = share.worker_of.count(worker.id)
        sizes = [len(share.slices_of(InstanceId(i))) for i, place in enumerate(share.worker_of) if place == worker.id]
        assert own == {s for s, owner in enumerate(owners) if owner == worker.id}
        assert share.standby(worker.id) == {s for s, some in enumerate(replicas) if worker.id in some}
        if own:
            assert count == min(worker.slots, len(own))
            assert max(sizes) - min(sizes) <= 1, "each instance has its share"
        else:
            assert count == (1 if share.standby(worker.id) else 0)


@few
@given(placements())
def test_the_instances_of_a_worker_lie_side_by_side(
    placed: tuple[tuple[Worker, ...], list[WorkerId], list[tuple[WorkerId, ...]]],
) -> None:
    crew, owners, replicas = placed
    share = assign(owners, replicas, crew)
    order = [worker.id for worker in crew]
    assert list(share.worker_of) == sorted(share.worker_of, key=order.index)


def test_a_worker_that_only_stands_by_has_one_instance_however_many_slots_it_has() -> None:
    share = assign([A, A], [(B,), (B,)], [Worker(A, slots=2), Worker(B, slots=4), Worker(C)])
    assert share.worker_of == (A, A, B)
    assert share.slices_of(InstanceId(2)) == ()
    assert share.standby(B) == {0, 1}


def test_a_worker_with_nothing_to_do_has_no_instance() -> None:
    assert assign([A], [()], [Worker(A), Worker(B)]).worker_of == (A,)


def test_without_any_replicas_there_is_no_table_of_them() -> None:
    share = assign([A, B], [(), ()], [Worker(A), Worker(B)])
    assert share.replicas == ()
    assert share.replicas_of(1) == ()
    assert share.standby(A) == frozenset()


def test_slices_of_a_worker_that_is_not_there_are_refused() -> None:
    with pytest.raises(InvalidPlan, match=r"slices \[1, 3\] are owned by workers \['c', 'd'\]"):
        assign([A, C, A, D], [()] * 4, [Worker(A), Worker(B)])


def share_of(*owners: WorkerId, replicas: tuple[tuple[WorkerId, ...], ...]) -> OperatorPlan:
    workers = tuple(dict.fromkeys(owners))
    return OperatorPlan(tuple(InstanceId(workers.index(o)) for o in owners), workers, replicas)


@pytest.mark.parametrize(
    ("replicas", "says"),
    [
        (((A,), (), ()), r"slice 0 of worker 'a' has replicas \['a'\]; .*the owner not among them"),
        (((), (C, B), ()), r"slice 1 of worker 'b' has replicas \['c', 'b'\]"),
        (((), (), (B, C, B)), r"slice 2 of worker 'a' has replicas \['b', 'c', 'b'\]; expected different workers"),
        (((D,), (), ()), r"workers \['d'\] are not in the plan"),
        (((B,), (A,)), "replicas for 2 slices, 3 exist"),
        (((B,), (A,), (), ()), "replicas for 4 slices, 3 exist"),
    ],
)
def test_replicas_that_make_no_sense_are_refused_by_the_name_of_the_step(
    replicas: tuple[tuple[WorkerId, ...], ...], says: str
) -> None:
    workers = tuple(map(Worker, (A, B, C)))
    with pytest.raises(InvalidPlan, match=f"step 'counts': .*{says}"):
        Plan(PlanVersion(1), 3, workers, {"counts": share_of(A, B, A, replicas=replicas)})


def test_the_next_plan_has_the_next_version_and_leaves_the_last_one_as_it_was() -> None:
    first = even_plan(("x", "y"), slices=4, instances=2, worker=A, version=PlanVersion(7))
    owners = {"x": [A, A, B, B], "y": [A] * 4}
    replicas: dict[str, list[tuple[WorkerId, ...]]] = {"x": [(B,), (B,), (A,), (A,)], "y": [()] * 4}
    second = first.next(owners, replicas, (*first.workers, Worker(B)))
    assert (first.version, second.version) == (7, 8)
    assert first == even_plan(("x", "y"), slices=4, instances=2, worker=A, version=PlanVersion(7))
    assert second.operators["x"].owners == (A, A, B, B)
    assert second.operators["x"].standby(B) == {0, 1}
    assert second.operators["y"].replicas == ()
    assert second.worker(B) == Worker(B)
    assert first.worker(B) is None


def test_the_next_plan_keeps_its_workers_unless_told() -> None:
    first = even_plan(("x",), slices=2, instances=1, worker=A, version=PlanVersion(1))
    assert first.next({"x": [A, A]}, {"x": [(), ()]}).workers == first.workers
    with pytest.raises(InvalidPlan, match=r"\['b'\], which are not in the plan"):
        first.next({"x": [A, B]}, {"x": [(), ()]})
    with pytest.raises(InvalidPlan, match="1 slices owned, 2 exist"):
        first.next({"x": [A]}, {"x": [()]})


def test_the_next_plan_is_checked_like_any_other() -> None:
    first = Plan(PlanVersion(1), 2, (Worker(A), Worker(B)), {"x": assign([A, B], [(), ()], [Worker(A), Worker(B)])})
    with pytest.raises(InvalidPlan, match="step 'x': slice 1 of worker 'b'"):
        first.next({"x": [A, B]}, {"x": [(B,), (B,)]})
    assert first.operators["x"].owned(B) == {SliceId(1)}

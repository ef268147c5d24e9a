"""Routes: every slice is processed once, and kept once by each worker that stands by for it."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.ids import InstanceId, SliceId, WorkerId
from springtide.plan.plan import OperatorPlan, assign
from springtide.plan.routes import Route, arcs, routes
from springtide.plan.worker import Worker

A, B, C = map(WorkerId, "abc")
CREW = (Worker(A, slots=1), Worker(B, slots=2), Worker(C, slots=3))

few = settings(max_examples=40, deadline=None)


@st.composite
def shares(draw: st.DrawFn) -> OperatorPlan:
    owners = draw(st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=16))
    others = [[w for w in (A, B, C) if w != owner] for owner in owners]
    replicas = [tuple(draw(st.lists(st.sampled_from(some), unique=True, max_size=2))) for some in others]
    return assign(owners, replicas, CREW)


def slices_in(route: Route) -> list[int]:
    return [s for first, end in route.arcs for s in range(first, end)]


@few
@given(shares())
def test_every_slice_goes_to_exactly_one_instance_to_be_processed(share: OperatorPlan) -> None:
    reached = [(s, r.instance) for r in routes(share) if not r.backup for s in slices_in(r)]
    assert sorted(reached) == list(enumerate(share.instance_of))


@few
@given(shares())
def test_every_slice_goes_once_as_a_backup_to_each_worker_that_stands_by(share: OperatorPlan) -> None:
    reached = Counter((s, share.worker_of[r.instance]) for r in routes(share) if r.backup for s in slices_in(r))
    assert reached == Counter((s, w) for s in range(len(share.instance_of)) for w in share.replicas_of(s))


@few
@given(shares())
def test_no_route_is_empty_and_a_worker_takes_in_its_backups_at_one_instance(share: OperatorPlan) -> None:
    found = routes(share)
    assert all(route.arcs for route in found)
    takers = [share.worker_of[r.instance] for r in found if r.backup]
    assert len(takers) == len(set(takers))
    assert all(share.worker_of.index(share.worker_of[r.instance]) == r.instance for r in found if r.backup)


def test_without_replicas_nothing_is_backed_up() -> None:
    assert not any(r.backup for r in routes(assign([A, B, C], [()] * 3, CREW)))


def test_an_instance_without_slices_has_no_route_but_its_backups() -> None:
    assert routes(assign([A, A], [(C,), (C,)], CREW)) == (
        Route(InstanceId(0), ((0, 2),)),
        Route(InstanceId(1), ((0, 2),), backup=True),
    )


@few
@given(st.sets(st.integers(0, 30)))
def test_arcs_hold_the_slices_and_never_touch(slices: set[int]) -> None:
    found = arcs(map(SliceId, slices))
    assert [s for first, end in found for s in range(first, end)] == sorted(slices)
    assert all(first < end for first, end in found)
    assert all(left[1] < right[0] for left, right in pairwise(found))

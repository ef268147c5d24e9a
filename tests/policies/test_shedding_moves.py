"""Who leaves a machine, where an instance goes, and how long it warms up."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from streams import alone, steady

from springtide.policies.shedding.graph import Query
from springtide.policies.shedding.model import Machine, Model
from springtide.policies.shedding.reschedule import Candidate, chosen
from springtide.policies.shedding.scheduler import place, place_all
from springtide.policies.shedding.warmup import WarmUp, still_warming


def named(*instances: tuple[str, int, float]) -> list[Candidate]:
    return [Candidate((name, 0), priority, cpu) for name, priority, cpu in instances]


def leaving(needed: float, *instances: tuple[str, int, float]) -> set[str]:
    return {each.key[0] for each in chosen(needed, named(*instances))}


def test_algorithm_2_the_cheapest_instance_that_is_enough_leaves() -> None:
    # All of one priority: 0.9 could be freed and 0.2 is needed. 0.5 can stay (0.4 left), 0.3 can't, 0.1 can.
    assert leaving(0.2, ("c", 1, 0.5), ("b", 1, 0.3), ("a", 1, 0.1)) == {"b"}


def test_algorithm_2_low_priorities_leave_first_even_if_they_cost_more() -> None:
    assert leaving(0.2, ("high", 5, 0.2), ("low", 1, 0.9)) == {"low"}


def test_algorithm_2_goes_up_in_priority_only_as_far_as_it_must() -> None:
    # low alone frees 0.3; with mid there is enough. low has to go: 1.0 - 0.3 is not 0.8. high is not looked at.
    assert leaving(0.8, ("high", 9, 0.8), ("mid", 5, 0.7), ("low", 1, 0.3)) == {"mid", "low"}
    # Of two of the middle priority the cheaper one goes, and low is still needed.
    assert leaving(0.5, ("mid1", 5, 0.7), ("mid2", 5, 0.3), ("low", 1, 0.3)) == {"mid2", "low"}


def test_algorithm_2_frees_what_is_needed_where_the_listing_would_not() -> None:
    # After a has to leave, the listing compares 0.6 of candidates with 0.4 still needed, and lets b stay.
    assert leaving(1.0, ("a", 1, 0.6), ("b", 1, 0.5)) == {"a", "b"}


def test_algorithm_2_nobody_leaves_for_nothing() -> None:
    assert leaving(0.0, ("a", 1, 0.6)) == set()
    assert leaving(0.5, ("idle", 1, 0.0), ("a", 1, 0.6)) == {"a"}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), max_size=12), st.integers(1, 300))
def test_algorithm_2_frees_enough_and_nobody_who_could_stay(instances: list[tuple[int, int]], needed: int) -> None:
    candidates = [Candidate((f"t{n}", 0), p, cpu) for n, (p, cpu) in enumerate(instances)]
    moved = chosen(needed, candidates)
    freed = sum(each.cpu for each in moved)
    assert freed >= min(needed, sum(each.cpu for each in candidates))
    if freed >= needed:
        assert all(freed - each.cpu < needed for each in moved), "one of them could have stayed"
    highest = max((each.priority for each in moved), default=0)
    below = sum(each.cpu for each in candidates if each.priority < highest)
    assert not moved or below < needed, "a higher priority than necessary is moved"


A, B, C = Machine("a", 2, 1.5), Machine("b", 2, 0.5), Machine("c", 2, 0.5)


def test_an_instance_goes_where_the_least_cpu_is_in_use() -> None:
    assert place(0.1, (A, B), Random(1)) == "b"


def test_other_processes_count() -> None:
    # What is in use is whatever uses it; b has no instance at all, and is fuller.
    assert place(None, (Machine("a", 2, 0.4), Machine("b", 2, 1.9)), Random(1)) == "a"


def test_ties_are_drawn_by_lot() -> None:
    drawn = [place(0.1, (A, B, C), Random(seed)) for seed in range(40)]
    assert set(drawn) == {"b", "c"}
    assert drawn == [place(0.1, (A, B, C), Random(seed)) for seed in range(40)], "the same lot for the same seed"


def test_an_unknown_instance_counts_as_a_full_core() -> None:
    # b: 0.5, then 1.5; c: 0.5, then 1.5; a: 1.5: the third may be on any, the fourth not where the third is.
    found = place_all([(None, ())] * 2, (A, B, C), Random(3))
    assert set(found) == {"b", "c"}
    small = place_all([(0.1, ())] * 2, (A, B, Machine("c", 2, 0.7)), Random(3))
    assert small == ("b", "b"), "one that is known to be small leaves room"


def test_only_preferred_machines_are_looked_at_unless_they_are_too_small() -> None:
    assert place(0.5, (A, B), Random(1), prefer={"a"}) == "a"
    assert place(0.6, (A, B), Random(1), prefer={"a"}) == "b"
    assert place(None, (A, B), Random(1), prefer={"a"}) == "b", "an unknown one needs a core"
    assert place(0.5, (A, B), Random(1), prefer={"a"}, promised={"a": 0.1}) == "b"


def test_a_moved_instance_does_not_go_back() -> None:
    assert place(0.5, (A, B), Random(1), avoid={"b"}) == "a"
    assert place(0.5, (A, B), Random(1), avoid={"a", "b"}) is None


def warm(accuracy: float = 1.0, cpu: float = 0.5) -> Model:
    return steady(alone(Query("q", 0, 0.6)), {"q": cpu / accuracy}, {"q": "a"}, {"a": 1}, accuracy={"q": accuracy})


def test_a_warm_up_ends_when_accuracy_is_there_and_cpu_has_settled() -> None:
    started = (WarmUp(("q", 0), 100.0),)
    first = still_warming(started, warm(), 105.0)
    assert first == (WarmUp(("q", 0), 100.0, 0.5),), "whether its CPU has settled is not known yet"
    assert still_warming(first, warm(cpu=0.7), 110.0) == (WarmUp(("q", 0), 100.0, 0.7),)
    assert still_warming(first, warm(cpu=0.55), 110.0) == ()
    assert still_warming(first, warm(accuracy=0.3), 110.0) == first, "below its minimum"
    assert still_warming(first, warm(cpu=0.55), 110.0, unseen={"q"}) == first, "nothing was measured of it"
    assert still_warming(first, warm(), 160.0, unseen={"q"}) == (), "nobody warms up for longer"


def test_a_warm_up_has_a_timeout() -> None:
    cold = (WarmUp(("q", 0), 100.0, 0.1),)
    assert still_warming(cold, warm(accuracy=0.1), 159.9)
    assert not still_warming(cold, warm(accuracy=0.1), 160.0)
    assert not still_warming(cold, warm(accuracy=0.1), 120.0, timeout_s=20.0)


def test_an_instance_that_is_gone_warms_up_no_more() -> None:
    assert still_warming((WarmUp(("q", 7), 100.0),), warm(), 101.0) == ()

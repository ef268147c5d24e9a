"""Limits and periods: what can't be is refused with what was expected, and nothing goes beyond them."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.policies.decision import Scale
from springtide.policies.limits import Bounds, Limits
from springtide.policies.time_of_day import BadPeriod, Period

some = settings(max_examples=80, deadline=None)
HOUR = 3_600


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    minimum = draw(st.integers(1, 20))
    return Bounds(minimum, draw(st.none() | st.integers(minimum, 40)))


@pytest.mark.parametrize(
    ("workers", "parallelism", "says"),
    [
        (Bounds(0), {}, "workers: expected a minimum of 1 or more, got 0"),
        (Bounds(5, 4), {}, "workers: expected a maximum of 5 or more, got 4"),
        (Bounds(), {"count": Bounds(-2)}, "parallelism of step 'count': expected a minimum of 1 or more, got -2"),
        (Bounds(), {"count": Bounds(3, 2)}, "parallelism of step 'count': expected a maximum of 3 or more, got 2"),
    ],
)
def test_bad_bounds_are_refused(workers: Bounds, parallelism: dict[str, Bounds], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Limits(workers, parallelism)


def test_bounds_for_a_step_that_is_not_there_are_refused() -> None:
    limits = Limits(parallelism={"count": Bounds(2), "cuont": Bounds(2)})
    with pytest.raises(ValueError, match=r"expected steps of \['count', 'split'\], got \['cuont'\]"):
        limits.check(["split", "count"])
    limits.check(["cuont", "count"])


def test_slots_that_a_step_may_not_use_are_not_provided() -> None:
    limits = Limits(parallelism={"count": Bounds(maximum=4)})
    bounded, note = limits.apply(Scale(6, "busy", {"split": 4, "count": 8}), slots=2)
    assert bounded == Scale(4, "busy", {"split": 4, "count": 4})
    assert note == "count is bounded to 1 to 4 instances, not 8; bounded to 4 workers, not 6"


def test_a_step_that_must_have_many_instances_needs_their_slots() -> None:
    limits = Limits(parallelism={"count": Bounds(7)})
    assert limits.apply(Scale(1, "idle", {"count": 2}), slots=2)[0] == Scale(4, "idle", {"count": 7})
    assert Limits(Bounds(1, 3), limits.parallelism).clamp(1, slots=2) == 3, "but no more workers than allowed"


def test_what_is_within_the_limits_is_left_alone() -> None:
    wanted = Scale(3, "busy", {"count": 5})
    assert Limits(Bounds(2, 4), {"count": Bounds(1, 9)}).apply(wanted, 2) == (wanted, "")


@some
@given(bounds(), st.dictionaries(st.sampled_from("abc"), bounds()), st.integers(1, 60), st.integers(1, 4), st.data())
def test_nothing_goes_beyond_the_limits(
    workers: Bounds, parallelism: dict[str, Bounds], asked: int, slots: int, data: st.DataObject
) -> None:
    wanted = Scale(asked, "", data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 60))))
    bounded, note = Limits(workers, parallelism).apply(wanted, slots)
    assert workers.clamp(bounded.workers) == bounded.workers
    for name, p in bounded.parallelism.items():
        assert parallelism.get(name, Bounds()).clamp(p) == p
    assert bool(note) == (bounded != wanted)
    again, _ = Limits(workers, parallelism).apply(bounded, slots)
    assert again == bounded


@pytest.mark.parametrize("text", ["", "22:00", "22-06", "24:00-06:00", "22:60-23:00", "06:00-06:00", "1:00-2:00", 7])
def test_a_period_that_can_not_be_is_refused(text: str) -> None:
    with pytest.raises(BadPeriod, match="two different times of day in UTC, for example") as refused:
        Period.parse(text)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_period_may_go_past_midnight() -> None:
    night = Period.parse("22:00-06:30")
    assert [night.covers(hour * HOUR) for hour in (21.99, 22, 23, 24, 30.49, 30.5, 36)] == [
        False,
        True,
        True,
        True,
        True,
        False,
        False,
    ]
    assert str(night) == "22:00-06:30 UTC"


@some
@given(st.integers(0, 23), st.integers(1, 24), st.floats(0, 2e9))
def test_a_period_and_the_rest_of_the_day_cover_every_time_once(start: int, end: int, at: float) -> None:
    if start == end % 24:
        return
    period, rest = Period.parse(f"{start:02}:00-{end:02}:00"), Period.parse(f"{end % 24:02}:00-{start:02}:00")
    assert period.covers(at) != rest.covers(at)
    assert period.covers(at) == period.covers(at + 24 * HOUR) or at % 1 != (at + 24 * HOUR) % 1

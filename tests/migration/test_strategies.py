"""Strategies: whatever the steps are, the state is there before its owner is, and nothing moves twice."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.ids import SliceId, WorkerId
from springtide.metrics.migration import course
from springtide.migration.errors import Refused
from springtide.migration.phase import Commit, Init, Point, Prepare, Swap
from springtide.migration.step import Flip, KeepReplicas, Options, Stall, Step, Supply
from springtide.migration.strategies import DEFAULT, LIVE, STOPPING, check, check_live, names
from springtide.migration.strategy import LiveStrategy, Strategy
from springtide.plan.moves import Move, moves

WORKERS = tuple(map(WorkerId, "abcd"))
NAMES = sorted(LIVE)

few = settings(max_examples=40, deadline=None)
owners = st.lists(st.tuples(st.sampled_from(WORKERS), st.sampled_from(WORKERS)), max_size=16)
heats = st.dictionaries(st.tuples(st.sampled_from("xy"), st.integers(0, 15).map(SliceId)), st.floats(0, 1e6))
options = st.builds(Options, st.integers(1, 6), st.booleans(), heats, st.floats(0, 100))


def going(pairs: Sequence[tuple[WorkerId, WorkerId]]) -> tuple[Move, ...]:
    """The moves of two operators, one of them the other way round."""
    before, after = [p[0] for p in pairs], [p[1] for p in pairs]
    return (*moves("x", before, after), *moves("y", after, before))


def flips(steps: Sequence[Step]) -> list[tuple[Move, ...]]:
    return [step.moves for step in steps if isinstance(step, Flip)]


@pytest.mark.parametrize("name", NAMES)
@few
@given(pairs=owners, told=options)
def test_every_move_is_supplied_before_it_is_flipped_and_flipped_once(
    name: str, pairs: list[tuple[WorkerId, WorkerId]], told: Options
) -> None:
    wanted = going(pairs)
    stalled: set[Move] = set()
    supplied: set[Move] = set()
    flipped: Counter[Move] = Counter()
    for step in LIVE[name].steps(wanted, told):
        if isinstance(step, Stall):
            assert not set(step.moves) & set(flipped), "what has moved goes on"
            stalled.update(step.moves)
        elif isinstance(step, Supply):
            supplied.update(step.moves)
        elif isinstance(step, Flip):
            assert set(step.moves) <= supplied, "its target stands by"
            flipped.update(step.moves)
        else:
            assert isinstance(step, KeepReplicas)
            assert set(step.moves) <= set(flipped), "only what has moved is held"
    assert flipped == Counter(wanted)
    assert stalled <= set(flipped), "nothing stays stalled"


@pytest.mark.parametrize("name", NAMES)
def test_no_moves_are_no_moves(name: str) -> None:
    assert all(step.moves == () for step in LIVE[name].steps((), Options()))


@few
@given(pairs=owners, told=options)
def test_progressive_flips_no_more_than_it_is_told_and_the_hottest_first(
    pairs: list[tuple[WorkerId, WorkerId]], told: Options
) -> None:
    batches = flips(LIVE["progressive"].steps(going(pairs), told))
    assert told.slices_an_epoch is not None
    assert all(1 <= len(batch) <= told.slices_an_epoch for batch in batches)
    assert all(len(batch) == told.slices_an_epoch for batch in batches[:-1]), "and no fewer than it may"
    if told.heat:
        warmth = [told.heat.get((move.operator, move.slice), 0.0) for batch in batches for move in batch]
        assert warmth == sorted(warmth, reverse=True)


def test_progressive_supplies_all_before_the_first_flip() -> None:
    """A target that has begun to stand by gets backups; beginning late would mean one checkpoint more."""
    wanted = moves("x", WORKERS[:1] * 6, WORKERS[1:2] * 6)
    first, *rest = LIVE["progressive"].steps(wanted, Options(slices_an_epoch=2))
    assert first == Supply(wanted)
    assert [type(step) for step in rest] == [Flip] * 3


@pytest.mark.parametrize(
    ("strategy", "told", "expected"),
    [
        ("teleport", Options(), "expected a strategy of"),
        ("progressive", Options(slices_an_epoch=0), "expected 1 slice an epoch or more, got 0"),
        ("handover", Options(hottest_first=True), "are for 'progressive', got 'handover'"),
        ("lazy", Options(slices_an_epoch=3), "are for 'progressive', got 'lazy'"),
    ],
)
def test_what_a_strategy_can_not_do_is_refused(strategy: str, told: Options, expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        check(strategy, told)


def test_progressive_has_a_pace_of_its_own() -> None:
    check("progressive", Options())
    batches = flips(LIVE["progressive"].steps(moves("x", WORKERS[:1] * 20, WORKERS[1:2] * 20), Options()))
    assert [len(batch) for batch in batches] == [8, 8, 4]


def test_handover_flips_all_at_once() -> None:
    wanted = moves("x", WORKERS, WORKERS[::-1])
    assert LIVE["handover"].steps(wanted, Options(slices_an_epoch=1)) == (Supply(wanted), Flip(wanted))


def test_lazy_keeps_the_way_back_open_for_as_long_as_it_is_told() -> None:
    wanted = moves("x", WORKERS, WORKERS[::-1])
    assert LIVE["lazy"].steps(wanted, Options(hold_s=2.5)) == (Supply(wanted), Flip(wanted), KeepReplicas(wanted, 2.5))


def test_partial_pause_stalls_what_moves_and_nothing_else_before_it_is_supplied() -> None:
    wanted = moves("x", WORKERS, (*WORKERS[:2], *WORKERS[:1:-1]))
    assert LIVE["partial_pause"].steps(wanted, Options()) == (Stall(wanted), Supply(wanted), Flip(wanted))


def test_the_default_is_a_strategy() -> None:
    assert DEFAULT in LIVE


def test_only_restart_goes_on_from_an_earlier_state_and_only_drain_finishes_the_epoch() -> None:
    first = {name: strategy.phases[0] for name, strategy in STOPPING.items()}
    stops = {name: phase.stop for name, phase in first.items() if isinstance(phase, Prepare)}
    assert stops == {"restart": Point.ANYWHERE, "drain": Point.EPOCHS, "capture": Point.OPERATORS}
    assert {name for name, strategy in STOPPING.items() if Commit() not in strategy.phases} == {"restart"}


@pytest.mark.parametrize("name", sorted(STOPPING))
def test_state_is_stored_before_workers_go_and_fetched_after_others_have_come(name: str) -> None:
    kinds = [type(phase) for phase in STOPPING[name].phases]
    assert kinds == [kind for kind in (Prepare, Commit, Swap, Init) if kind in kinds]
    check(name, Options())
    with pytest.raises(Refused, match="it is for scaling"):
        check_live(name, Options())


@pytest.mark.parametrize("strategy", [*LIVE.values(), *STOPPING.values()], ids=lambda strategy: strategy.name)
def test_a_strategy_says_what_it_does(strategy: Strategy) -> None:
    assert strategy.name in names()
    assert 20 < len(strategy.summary) < 100
    assert not strategy.summary.endswith("."), "it is part of a sentence"


def test_another_package_offers_a_function_or_a_strategy_and_nothing_else() -> None:
    def all_at_once(wanted: Sequence[Move], told: Options) -> tuple[Step, ...]:
        """Everything in one step.

        And more about it.
        """
        return (Flip(tuple(wanted)),)

    found = LiveStrategy.offered("all_at_once", all_at_once)
    assert (found.name, found.summary) == ("all_at_once", "Everything in one step.")
    assert LiveStrategy.offered("other", found) is found
    with pytest.raises(TypeError, match="expected a LiveStrategy or a function"):
        LiveStrategy.offered("number", 7)


def test_what_is_measured_as_stopping_is_what_stops() -> None:
    assert set(STOPPING) == course.STOPPING

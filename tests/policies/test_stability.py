"""The guards around a policy: what each of them lets through, and what it says when it does not."""

from dataclasses import dataclass, replace
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import EVERY_S, Flow, Step, entry, gauge, line

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Edge, Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.guards import Stability, Stable
from springtide.policies.limits import Bounds, Limits
from springtide.policies.past import AppState, Entry, Past
from springtide.policies.scaling.ds2 import Ds2

FLOW = line(1_000, Step(100), slots=2)
"""Keeps 10 slots busy: 5 workers."""
AT = 100_000.0
LOOSE = Stability(band=0, stabilise_s=0, scale_down_s=0, ineffective_s=0)
MOVE = Rebalance("a", frozenset({SliceId(3)}), WorkerId("w0"), WorkerId("w1"), "w0 is hot")


@dataclass(frozen=True)
class Says:
    """A policy that always decides the same."""

    decision: Decision

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        return self.decision


def up(workers: int = 9) -> Says:
    return Says(Scale(workers, "more"))


def before(at: float, decision: Decision, workers: int, helped: bool | None = None) -> Entry:
    return entry(0, at, decision, AppState(workers, 1_000, 1_000, 0), helped)


def wished(at: float, decision: Decision, workers: int) -> Entry:
    """A wish that was vetoed."""
    return Entry(0, at, decision, Hold("later"), ("later",), AppState(workers, 1_000, 1_000, 0))


def test_what_no_guard_minds_is_done() -> None:
    for policy in (up(), Says(MOVE), Says(Scale(1, "less")), Says(Hold("calm", warning=True))):
        verdict = Stable(policy, LOOSE).consider(FLOW.sharing(5, AT), ())
        assert (verdict.wanted, verdict.decision, verdict.vetoes) == (policy.decision, policy.decision, ())


def test_it_is_a_policy() -> None:
    assert Stable(up(), LOOSE)(FLOW.sharing(5), ()) == Scale(9, "more")


def test_nothing_is_decided_from_what_is_no_number() -> None:
    broken = replace(FLOW.sharing(5), sources=(replace(FLOW.sharing(5).sources[0], rate=nan),))
    verdict = Stable(up(), LOOSE).consider(broken, ())
    assert (
        verdict.decision
        == verdict.wanted
        == Hold(
            "nothing can be decided: rate of source 'rows': expected a number that is not negative, got nan",
            warning=True,
        )
    )
    unmeasured = replace(FLOW.sharing(5), edges=(Edge("rows", "a", nan),))
    assert "ratio of rows from 'rows' to 'a'" in Stable(up(), LOOSE)(unmeasured, ()).reason
    nobody = Stable(up(), LOOSE).consider(replace(FLOW.sharing(5), workers=()), ())
    assert nobody.decision == Hold("nothing can be decided: there are no workers", warning=True)


def test_a_dry_run_decides_and_changes_nothing() -> None:
    for policy in (up(), Says(MOVE)):
        verdict = Stable(policy, replace(LOOSE, dry_run=True)).consider(FLOW.sharing(5), ())
        assert verdict.wanted == policy.decision
        assert verdict.vetoes == ("dry run",)
        assert isinstance(verdict.decision, Hold)


def test_periods_are_excluded() -> None:
    """AT is 03:46:40 UTC."""
    stable = Stable(Says(MOVE), replace(LOOSE, excluded=("22:00-06:00",)))
    verdict = stable.consider(FLOW.sharing(5, AT), ())
    assert verdict.decision == Hold("move a:3 to w1 is vetoed: no changes in the period 22:00-06:00 UTC")
    assert stable(FLOW.sharing(5, AT + 3 * 3_600), ()) == MOVE


def test_a_load_that_is_just_changing_is_looked_at_once_more() -> None:
    steady = FLOW.sharing(5, AT)
    rising = replace(steady, sources=tuple(replace(s, rate_before=s.rate / 3) for s in steady.sources))
    stable = Stable(up(), LOOSE)
    first = stable.consider(rising, ())
    assert len(first.vetoes) == 1
    assert first.vetoes[0].startswith("the load is just changing at 'rows', from ")
    seen = Entry(1, AT, first.wanted, first.decision, first.vetoes, gauge(rising, 1.0))
    assert stable.consider(rising, (seen,)).decision == up().decision, "the same is wanted again"
    partly = replace(seen, gauge=replace(gauge(rising, 1.0), arriving=rising.arriving / 2))
    assert stable.consider(rising, (partly,)).vetoes == first.vetoes, "as many were wanted for half of it"
    less = replace(seen, wanted=Scale(6, "a part of what was to come"))
    assert stable.consider(rising, (less,)).vetoes == first.vetoes, "something else is wanted now"
    assert stable.consider(rising, (less, seen)).decision == up().decision, "it may go on changing for ever"
    same = replace(steady, sources=tuple(replace(s, rate_before=s.rate * 0.9) for s in steady.sources))
    assert stable.consider(same, ()).vetoes == ()


def test_a_change_is_left_to_settle() -> None:
    stable = Stable(up(), replace(LOOSE, stabilise_s=30))
    past = (replace(before(AT, Scale(5, "more"), 4), ended_at=AT + 8), wished(AT + 20, Scale(9, "more"), 5))
    assert stable.consider(FLOW.sharing(5, AT + 20), past).vetoes == ("scale to 5 was 12 s ago; it settles for 30 s",)
    assert stable(FLOW.sharing(5, AT + 38), past) == Scale(9, "more"), "a wish that was vetoed changed nothing"
    going_on = (replace(past[0], ended_at=None),)
    assert isinstance(stable(FLOW.sharing(5, AT + 29), going_on), Hold)


def test_no_scaling_near_the_target() -> None:
    """On 7 workers of 2 slots 10 busy ones are 71 %; a move is no scaling."""
    config = replace(LOOSE, band=0.1)
    verdict = Stable(up(), config).consider(FLOW.sharing(7), ())
    assert verdict.vetoes == ("utilisation 71 % is within 60 % to 80 %",)
    assert isinstance(Stable(up(), config)(FLOW.sharing(6), ()), Scale), "83 % is too near to the brim"
    assert isinstance(Stable(up(12), config)(FLOW.sharing(9), ()), Scale), "56 % is a waste"
    assert Stable(Says(MOVE), config)(FLOW.sharing(7), ()) == MOVE
    shedding = replace(FLOW.sharing(7), shed={"a": 1.0})
    assert isinstance(Stable(up(), config)(shedding, ()), Scale), "who sheds has too little room"
    assert isinstance(Stable(Says(Scale(3, "fewer")), config)(shedding, ()), Hold)


def test_slots_that_are_half_idle_are_too_few_if_rows_are_left_behind() -> None:
    """An epoch has overheads: its slots may never be busy for 70 %. What matters is what all due rows would take."""
    snapshot = FLOW.sharing(7)
    late = replace(
        snapshot,
        instances=tuple(replace(i, records_in=i.records_in / 2) for i in snapshot.instances),
        sources=tuple(replace(s, lag_rows=5_000, lag_s=5) for s in snapshot.sources),
    )
    assert isinstance(Stable(up(), replace(LOOSE, band=0.25))(late, ()), Scale)


def test_a_backlog_counts_in_the_band() -> None:
    snapshot = FLOW.sharing(7)
    behind = replace(snapshot, sources=(replace(snapshot.sources[0], lag_rows=60 * 1_000),))
    assert isinstance(Stable(up(), replace(LOOSE, band=0.2))(behind, ()), Scale)


def test_workers_are_let_go_only_when_no_more_were_wanted_for_a_while() -> None:
    stable = Stable(Says(Scale(2, "less")), replace(LOOSE, scale_down_s=120))
    past = (
        wished(AT - 200, Hold("calm"), 5),
        wished(AT - 110, Scale(4, "less"), 5),
        wished(AT - 50, Scale(2, "less"), 5),
    )
    verdict = stable.consider(FLOW.sharing(5, AT), past)
    assert isinstance(verdict.decision, Hold), "what was wanted last before the window holds on into it"
    assert verdict.vetoes == ("5 workers wanted 120 s ago; workers are let go 120 s after that",)
    partly = stable.consider(FLOW.sharing(5, AT + 10), past)
    assert partly.decision == Scale(4, "less")
    assert partly.vetoes == ("4 workers wanted 120 s ago; workers are let go 120 s after that",)
    assert stable.consider(FLOW.sharing(5, AT + 71), past).decision == Scale(2, "less")


def test_all_are_kept_until_they_have_been_watched_for_long_enough() -> None:
    stable = Stable(Says(Scale(2, "less")), replace(LOOSE, scale_down_s=120))
    assert isinstance(stable(FLOW.sharing(5, AT), ()), Hold)
    begun = (wished(AT - 119, Scale(2, "less"), 5),)
    assert isinstance(stable(FLOW.sharing(5, AT), begun), Hold)
    assert stable(FLOW.sharing(5, AT + 1), begun) == Scale(2, "less")


def test_a_rebalance_is_no_wish_for_fewer() -> None:
    stable = Stable(Says(Scale(2, "less")), replace(LOOSE, scale_down_s=120))
    past = (wished(AT - 300, Scale(2, "less"), 5), wished(AT - 20, MOVE, 5))
    assert isinstance(stable(FLOW.sharing(5, AT), past), Hold)


def test_more_workers_are_not_tried_again_if_they_did_not_help() -> None:
    stable = Stable(up(), replace(LOOSE, ineffective_s=600))
    past = (before(AT - 100, Scale(5, "more"), 4, helped=False),)
    verdict = stable.consider(FLOW.sharing(5, AT), past)
    assert verdict.vetoes == ("scale to 5 did not help; more workers are not tried for another 500 s",)
    assert isinstance(stable(FLOW.sharing(5, AT + 500), past), Scale), "for a while"
    later = (*past, before(AT - 50, Scale(6, "more"), 5, helped=True))
    assert isinstance(stable(FLOW.sharing(6, AT), later), Scale), "the last one did"
    assert isinstance(Stable(Says(Scale(2, "less")), stable.config)(FLOW.sharing(5, AT), past), Scale)
    shrunk = (before(AT - 100, Scale(3, "less"), 4, helped=False),)
    assert isinstance(stable(FLOW.sharing(3, AT), shrunk), Scale), "fewer is another kind"


def test_limits_hold_whatever_is_wanted() -> None:
    stable = Stable(up(9), replace(LOOSE, limits=Limits(Bounds(2, 6))))
    verdict = stable.consider(FLOW.sharing(5), ())
    assert verdict.decision == Scale(6, "more")
    assert verdict.vetoes == ("bounded to 6 workers, not 9",)
    assert stable(FLOW.sharing(6), ()) == Hold("bounded to 6 workers, not 9")


def test_too_few_or_too_many_workers_are_put_right_though_the_policy_is_content() -> None:
    """Also within the band and without delay."""
    config = Stability(limits=Limits(Bounds(2, 6)))
    grown = Stable(Says(Hold("calm")), config).consider(FLOW.times(0.1).sharing(1), ())
    assert grown.decision == Scale(2, "the limits ask for 2 workers, not 1")
    assert Stable(Says(Hold("calm")), config)(FLOW.sharing(7), ()) == Scale(6, "the limits ask for 6 workers, not 7")
    assert isinstance(Stable(Says(Hold("calm")), replace(config, dry_run=True))(FLOW.sharing(7), ()), Hold)


def test_what_the_limits_ask_for_is_not_delayed_and_what_goes_beyond_it_is() -> None:
    decision = Stable(Says(Scale(2, "less")), Stability(limits=Limits(Bounds(1, 6))))(FLOW.sharing(7), ())
    assert decision == Scale(6, "less")


@dataclass(frozen=True)
class Asked:
    """Holds, and says at which rate."""

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        return Hold(f"{snapshot.sources[0].rate:.3f}")


def test_the_policy_plans_with_room_for_the_target_the_backlog_and_the_next_pause() -> None:
    snapshot = FLOW.sharing(7)
    behind = replace(snapshot, pause_s=3.0, sources=(replace(snapshot.sources[0], lag_rows=1_200),))
    expected = 1_000 / 0.8 + 1_200 / 60 + 1_000 * 3 / 60
    config = replace(LOOSE, target_utilisation=0.8)
    assert Stable(Asked(), config)(behind, ()) == Hold(f"{expected:.3f}")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target_utilisation": 0}, "target_utilisation: expected more than 0 and at most 1, got 0"),
        ({"target_utilisation": 1.2}, "target_utilisation: expected more than 0 and at most 1, got 1.2"),
        ({"band": -0.1}, "band: expected 0 or more and less than 1"),
        ({"catch_up_s": 0}, "catch_up_s: expected more than 0 seconds, got 0"),
        ({"stabilise_s": -1}, "stabilise_s: expected 0 seconds or more, got -1"),
        ({"scale_down_s": nan}, "scale_down_s: expected 0 seconds or more, got nan"),
        ({"excluded": ["night"]}, "for example '22:00-06:00', got 'night'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Stability(**options)


def run(stable: Stable, flow: Flow, workers: int, past: Past, times: int) -> tuple[int, Past]:
    """So many decisions, a minute apart; returns the workers in the end."""
    for _ in range(times):
        at = len(past) * EVERY_S
        snapshot = flow.sharing(workers, at)
        verdict = stable.consider(snapshot, past)
        done = isinstance(verdict.decision, Scale)
        made = Entry(
            len(past), at, verdict.wanted, verdict.decision, verdict.vetoes, gauge(snapshot, 1.0), at if done else None
        )
        past = (*past, made)
        workers = verdict.decision.workers if isinstance(verdict.decision, Scale) else workers
    return workers, past


@settings(max_examples=40, deadline=None)
@given(st.floats(200, 20_000), st.integers(1, 30), st.integers(1, 4), st.floats(0.3, 3))
def test_under_a_steady_load_it_comes_to_rest_near_the_target(
    rate: float, start: int, slots: int, factor: float
) -> None:
    """Also after the rate has changed; and then it changes nothing more."""
    flow = line(rate, Step(300), Step(900), slots=slots)
    stable = Stable(Ds2())
    workers, past = run(stable, flow, start, (), 8)
    workers, past = run(stable, flow.times(factor), workers, past, 8)
    rest, past = run(stable, flow.times(factor), workers, past, 6)
    assert all(isinstance(e.decision, Hold) for e in past[-6:])
    busy = rate * factor * (1 / 300 + 1 / 900)
    assert busy / (rest * slots) <= 0.9 + 1e-9
    assert rest == 1 or busy / ((rest - 1) * slots) > 0.5 - 1e-9

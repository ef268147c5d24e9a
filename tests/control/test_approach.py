"""How queries get to the accuracies that were decided, cycle by cycle, and that priorities hold on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from springtide.control.shed.approach import SMALL, Approach, Stage, gently
from springtide.policies.shedding.graph import Query

RISE = 0.3
LEAST = 0.1


@dataclass(eq=False)
class Owner:
    """An app with a query for each priority that it is told, which runs where it is told."""

    app: str
    accuracy: dict[str, float]
    priorities: Mapping[str, int]
    plan_version: int = 1

    def queries(self) -> list[Query]:
        return [Query(f"{self.app}/{name}", priority) for name, priority in self.priorities.items()]

    def step(self, task: str) -> str | None:
        app, _, name = task.partition("/")
        return name if app == self.app else None


@dataclass
class Cycles:
    """Cycle after cycle of the same load, with decisions as they are told."""

    owners: list[Owner]
    workers: dict[str, set[str]] = field(default_factory=dict)
    """By query: where it runs; on worker `w` unless said."""
    rates: dict[str, float] = field(default_factory=dict)
    approach: Approach = field(default_factory=Approach)

    def next(self, *, settling: bool = False, room: float = 0.5, **goals: float) -> dict[str, float]:
        """The accuracies after one more cycle; goals are by query, whose names differ between apps."""
        names = {
            name: query.name
            for owner in self.owners
            for name, query in zip(owner.priorities, owner.queries(), strict=True)
        }
        offers = {
            owner: SimpleNamespace(
                keeps_up=False, total=self.rates.get(owner.app, 100.0), least=dict.fromkeys(owner.priorities, LEAST)
            )
            for owner in self.owners
        }
        decision = SimpleNamespace(accuracy={names[name]: goal for name, goal in goals.items()})
        stage = Stage(room, {query: self.workers.get(name, {"w"}) for name, query in names.items()}, settling)
        wanted = self.approach.next(cast(Any, offers), cast(Any, decision), stage, RISE)
        for owner in self.owners:
            owner.accuracy = dict(wanted[cast(Any, owner)])
        return {name: share for owner in self.owners for name, share in owner.accuracy.items()}


def two_apps(high: float, low: float, **more: Any) -> Cycles:
    return Cycles([Owner("a", {"high": high}, {"high": 9}), Owner("b", {"low": low}, {"low": 1})], **more)


def test_what_is_decided_for_a_new_load_holds_at_once_downwards_and_in_steps_upwards() -> None:
    cycles = two_apps(0.3, 0.9)
    assert cycles.next(high=1.0, low=0.2) == {"high": pytest.approx(0.6), "low": 0.2}
    assert cycles.next(high=1.0, low=0.2) == {"high": pytest.approx(0.9), "low": 0.2}
    assert cycles.next(high=1.0, low=0.2) == {"high": 1.0, "low": 0.2}


def test_under_the_same_load_accuracies_hardly_move() -> None:
    cycles = two_apps(1.0, 0.5)
    cycles.next(high=1.0, low=0.5)
    assert cycles.next(high=1.0, low=0.45)["low"] == pytest.approx(0.5 - 0.2 * 0.05)
    assert cycles.next(high=1.0, low=0.55)["low"] <= 0.5 + SMALL


def test_while_somebody_moves_or_settles_all_give_way_at_once() -> None:
    for settling, then in ((False, 0.9 - SMALL), (True, 0.2)):
        cycles = two_apps(1.0, 0.9)
        cycles.next(high=1.0, low=0.9)
        assert cycles.next(settling=settling, high=1.0, low=0.2)["low"] == pytest.approx(then)


def test_on_the_way_up_another_app_waits_until_the_higher_one_has_risen() -> None:
    cycles = two_apps(0.3, 0.3)
    steps = [cycles.next(high=1.0, low=1.0) for _ in range(4)]
    assert [step["high"] for step in steps] == pytest.approx([0.6, 0.9, 1.0, 1.0])
    assert [step["low"] for step in steps] == pytest.approx([0.3, 0.6, 0.9, 1.0])


def test_queries_of_one_app_rise_together() -> None:
    """Their epochs are the same."""
    cycles = Cycles([Owner("a", {"high": 0.3, "low": 0.3}, {"high": 9, "low": 1})])
    assert cycles.next(high=1.0, low=1.0) == {"high": pytest.approx(0.6), "low": pytest.approx(0.6)}


def test_who_shares_no_worker_does_not_wait() -> None:
    cycles = two_apps(0.3, 0.5, workers={"low": {"elsewhere"}})
    assert cycles.next(high=1.0, low=0.8)["low"] == pytest.approx(0.8)


def test_of_two_that_give_way_the_lower_one_is_never_above_unless_that_was_decided() -> None:
    cycles = two_apps(0.5, 0.8)
    assert cycles.next(high=0.5, low=0.8)["low"] == 0.8, "it has a worker more, say"
    assert cycles.next(high=0.5, low=0.2)["low"] == 0.5, "gently it would be 0.785"


def test_nobody_has_less_than_the_least_whoever_stands_above() -> None:
    cycles = two_apps(LEAST / 2, 0.5)
    assert cycles.next(high=0.0, low=0.0) == {"high": LEAST, "low": LEAST}


def test_a_load_that_has_changed_anywhere_sets_all_anew() -> None:
    cycles = two_apps(1.0, 0.9)
    cycles.next(high=1.0, low=0.9)
    cycles.rates["a"] = 150.0
    assert cycles.next(high=1.0, low=0.2)["low"] == 0.2


def test_another_plan_sets_all_anew() -> None:
    cycles = two_apps(1.0, 0.9)
    cycles.next(high=1.0, low=0.9)
    cycles.owners[0].plan_version = 2
    assert cycles.next(high=1.0, low=0.2)["low"] == 0.2


@pytest.mark.parametrize(
    ("now", "goal", "before", "then"),
    [
        (0.5, 0.52, 0.5, 0.5),  # Not worth a change.
        (0.5, 0.55, 0.5, 0.51),  # A fifth of the way.
        (0.5, 0.9, 0.5, 0.5 + SMALL),  # Far away for the first time.
        (0.5, 0.9, 0.7, 0.7),  # For the second: as far as both go.
        (0.5, 0.1, 0.3, 0.3),
        (0.5, 0.9, 0.3, 0.5 + SMALL),  # To and fro is noise.
        (0.99, 1.0, 0.99, 1.0),  # To full accuracy it is always worth it.
    ],
)
def test_gently(now: float, goal: float, before: float, then: float) -> None:
    assert gently(now, goal, before) == pytest.approx(then)

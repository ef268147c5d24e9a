"""How an app is told to adapt: what can't be meant is refused in words."""

from typing import Any

import pytest

from springtide.control.adapt.settings import Adapt
from springtide.engine.spark.capacity import Capacity
from springtide.migration.errors import Refused
from springtide.policies.balancing.otd import Otd


def test_what_is_told_is_read_and_said_again() -> None:
    told = {
        "policy": "otd",
        "minimum": 2,
        "maximum": 8,
        "strategy": "lazy",
        "dry_run": True,
        "interval_s": 1,
        "parallelism": {"count": [1, 4]},
        "excluded": ["22:00-06:00"],
        "policy_options": {"cpu_high": 0.9},
    }
    adapt = Adapt.from_json(told)
    stable = adapt.stable(["count"])
    assert stable.policy == Otd(cpu_high=0.9)
    assert stable.config.limits.workers.maximum == 8
    assert stable.config.limits.parallelism["count"].maximum == 4
    assert (stable.config.dry_run, stable.config.excluded) == (True, ("22:00-06:00",))
    assert (adapt.pace().interval_s, adapt.to_json()["minimum"]) == (1, 2)
    assert Adapt.from_json({}) == Adapt()


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"policy": "ds3"}, r"expected a policy of \['dhalion', 'ds2', 'otd', 'skew', 'threshold'\], got 'ds3'"),
        ({"minimum": 5, "maximum": 2}, "workers: expected a maximum of 5 or more, got 2"),
        ({"minimum": 0}, "workers: expected a minimum of 1 or more, got 0"),
        ({"minimum": True}, "'minimum' is True: expected a whole number"),
        ({"maximum": "8"}, "'maximum' is '8': expected a whole number"),
        ({"strategy": "teleport"}, "expected a strategy of"),
        ({"dry_run": 1}, "'dry_run' is 1: expected true or false"),
        ({"interval_s": 0}, "interval_s: expected more than 0 seconds, got 0"),
        ({"window_s": "long"}, "'window_s' is 'long': expected a number"),
        ({"excluded": ["midnight"]}, "expected a period as two different times of day"),
        ({"excluded": "22:00-06:00"}, "'excluded' is '22:00-06:00': expected a list of texts"),
        ({"parallelism": {"count": [1]}}, "expected two whole numbers a step"),
        ({"parallelism": [1, 2]}, "expected the least and the most by step"),
        ({"policy_options": {"cpu_high": 0.5}}, "policy 'ds2': expected options of"),
        ({"policy_options": {"x": "y"}}, "expected numbers by name"),
        ({"workers": 3}, "'workers' is not a field here"),
    ],
)
def test_what_can_not_be_meant_is_refused(told: dict[str, Any], expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        Adapt.from_json(told)


def test_no_more_workers_than_there_is_room_for() -> None:
    room = Capacity(8, 2, None, "this machine (2 cores)")
    assert Adapt().within(room).maximum == 8
    assert Adapt(maximum=4).within(room).maximum == 4
    assert Adapt(maximum=50).within(Capacity(None)).maximum == 50
    assert Adapt(maximum=50, force=True).within(room).maximum == 50
    for told in ({"maximum": 50}, {"minimum": 50}):
        with pytest.raises(Refused, match=r"50 workers asked for; this machine \(2 cores\) carries at most 8"):
            Adapt.from_json(told).within(room)


def test_bounds_of_a_step_that_the_app_has_not() -> None:
    with pytest.raises(Refused, match=r"parallelism: expected steps of \['count'\], got \['sum'\]"):
        Adapt(parallelism={"sum": (1, 2)}).stable(["count"])

"""As-of joins against an oracle that looks at every row: each left row comes once, with what was known at its time."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER = {"currency": str, "at": datetime, "amount": int}
RATE = {"code": str, "at": datetime, "rate": int}
Row = dict[str, Any]


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def harness(instances: int = 1, **options: Any) -> StepHarness:
    app = App("app", slices=8)
    orders, rates = (app.source(name, sources.generator(1)) for name in ("orders", "rates"))
    given = {"time": ("at", "at"), **options}
    orders.key_by("currency").as_of("priced", rates.key_by("code"), **given).sink("out", sinks.memory())
    return StepHarness(app, "priced", [ORDER, RATE], instances=instances, hash=lambda key: stable_hash(key) % 3 << 61)


keys = st.sampled_from(["a", "b", "c", None])
orders_of_an_epoch = st.lists(st.tuples(keys, st.integers(0, 40), st.integers(0, 3)), max_size=8)
rates_of_an_epoch = st.lists(
    st.tuples(keys, st.integers(0, 40)), max_size=8, unique_by=lambda key_and_second: key_and_second
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(orders_of_an_epoch, rates_of_an_epoch), max_size=8),
    st.sampled_from(["left", "inner"]),
    st.integers(0, 15),
    st.sampled_from([None, 0, 5, 20]),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_each_row_comes_once_with_what_was_known_at_its_time(
    epochs: list[Any], how: str, late_s: int, tolerance_s: int | None, instances: list[int]
) -> None:
    """Of rates with the same time the one that came last counts. Slices change hands, keys collide."""
    tolerance = None if tolerance_s is None else f"{tolerance_s} seconds"
    priced = harness(how=how, late=f"{late_s} seconds", tolerance=tolerance)
    number = 0
    watermark: datetime | None = None
    newest: list[datetime | None] = [None, None]
    waiting: list[Row] = []
    rates: list[Row] = []
    due: Counter[tuple[Any, ...]] = Counter()
    seen: Counter[tuple[Any, ...]] = Counter()
    far = [("far", 10_000, 0)], [("far", 10_000)]
    for drawn in [*epochs, far, ([], [])]:
        orders = [{"currency": k, "at": at(s), "amount": amount} for k, s, amount in drawn[0]]
        more = [{"code": k, "at": at(s), "rate": number + i} for i, (k, s) in enumerate(drawn[1])]
        number += 100
        if None not in newest:
            reached = min(t for t in newest if t) - timedelta(seconds=late_s)
            watermark = max(watermark or reached, reached)
        in_time = [[r for r in rows if watermark is None or r["at"] >= watermark] for rows in (orders, more)]
        waiting, rates = waiting + in_time[0], rates + in_time[1]
        for side, rows in enumerate((orders, more)):
            newest[side] = max([r["at"] for r in rows] + [t for t in [newest[side]] if t], default=None)
        done = [o for o in waiting if o["currency"] is None or (watermark is not None and o["at"] < watermark)]
        waiting = [o for o in waiting if o not in done]
        for order in done:
            known = [r for r in rates if r["code"] == order["currency"] is not None and r["at"] <= order["at"]]
            if tolerance_s is not None:
                known = [r for r in known if order["at"] - r["at"] <= timedelta(seconds=tolerance_s)]
            last = max(known, key=lambda rate: (rate["at"], rate["rate"]), default={"at": None, "rate": None})
            if last["at"] is not None or (how == "left"):
                due[order["currency"], order["at"], order["amount"], last["at"], last["rate"]] += 1
        priced.instances = instances[len(epochs) % len(instances)]
        found = priced.epoch(orders, more)
        seen += Counter((r["currency"], r["at"], r["amount"], r["at_right"], r["rate"]) for r in found)
        assert seen == due
    left = {row["currency"]: row for row in priced.state()}
    assert all(len(row["1.rate"]) <= 1 and not row["0.at"] for key, row in left.items() if key != "far")
    assert tolerance_s is None or set(left) == {"far"}, "nothing is left of what is too old"


def test_a_late_rate_is_of_use_within_the_lateness() -> None:
    priced = harness(late="10 seconds")
    rate = {"code": "EUR", "at": at(0), "rate": 1}
    assert priced.epoch([{"currency": "EUR", "at": at(5), "amount": 1}], [rate]) == []
    assert priced.epoch([{"currency": "EUR", "at": at(12), "amount": 2}], [{**rate, "at": at(12), "rate": 3}]) == []
    assert priced.epoch([], [{**rate, "at": at(4), "rate": 2}]) == []
    priced.epoch([{"currency": "X", "at": at(60), "amount": 0}], [{"code": "X", "at": at(60), "rate": 0}])
    assert [(r["amount"], r["rate"]) for r in priced.epoch([], [{**rate, "at": at(3)}])] == [(1, 2), (2, 3)]
    assert priced.late_rows == 1


@pytest.mark.parametrize(
    ("options", "told"), [({"how": "full"}, "how='left' or how='inner'"), ({"time": None}, "time=")]
)
def test_what_cannot_be_meant_is_refused_with_the_step(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadGraph, match=told) as refused:
        harness(**options)
    assert refused.value.step == "priced"

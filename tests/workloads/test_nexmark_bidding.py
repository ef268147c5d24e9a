"""Auctions and bids that come in any order and in any epochs, against plain Python over all of them."""

import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from springtide import App, sinks
from springtide.testing import StepHarness
from springtide.workloads.nexmark.events import AUCTION, BID
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries.catalogue import CATALOGUE
from springtide.workloads.nexmark.run import stream_of

Row = dict[str, Any]
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
LATE_MS = 4000
COLUMNS = {
    "q4": (("id", "category", "date_time", "expires"), ("auction", "price", "date_time")),
    "q6": (("id", "seller", "date_time", "expires"), ("auction", "price", "date_time")),
    "q9": (tuple(AUCTION.names), ("auction", "bidder", "price", "date_time", "extra")),
}


def at(time_ms: int) -> datetime:
    return NOON + timedelta(milliseconds=time_ms)


@dataclass(frozen=True)
class Case:
    auctions: list[Row]
    bids: list[Row]
    epochs: list[tuple[list[Row], list[Row]]]

    def valid(self, auction: Row) -> list[Row]:
        """The bids for an auction, the best one first."""
        bids = [bid for bid in self.bids if bid["auction"] == auction["id"]]
        timely = [bid for bid in bids if auction["date_time"] <= bid["date_time"] <= auction["expires"]]
        return sorted(timely, key=lambda bid: (-bid["price"], bid["date_time"], bid["bidder"], bid["extra"]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Events, in an order in which none is later than the watermark allows, cut into epochs anywhere."""
    times = st.integers(0, 12_000).map(lambda ms: ms // 500 * 500)
    auctions, bids = [], []
    for number in range(draw(st.integers(1, 5))):
        opened = draw(times)
        blank: Row = {name: "" if AUCTION.field(name).type == pa.string() else 0 for name in AUCTION.names}
        life = draw(st.integers(1, 6)) * 500
        sold = {"id": number, "seller": number % 2, "category": 10 + number % 2, "item_name": f"item {number}"}
        auctions.append(blank | sold | {"date_time": at(opened), "expires": at(opened + life)})
    for _ in range(draw(st.integers(0, 40))):
        bids.append(
            {
                "auction": draw(st.integers(0, 5)),
                "bidder": draw(st.integers(0, 2)),
                "price": draw(st.integers(1, 4)) * 100,
                "date_time": at(draw(times)),
                "extra": draw(st.sampled_from("ab")),
            }
        )
    delay = st.integers(0, LATE_MS - 1)
    events = [(row["date_time"] + timedelta(milliseconds=draw(delay)), row) for row in (*auctions, *bids)]
    rows = [row for _, row in sorted(events, key=lambda event: event[0])]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    epochs = []
    for first, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        some = rows[first:end]
        epochs.append(([row for row in some if "id" in row], [row for row in some if "id" not in row]))
    return Case(auctions, bids, epochs)


def harness(name: str, step: str) -> StepHarness:
    app = App(name)
    stream_of(CATALOGUE[name])(Inputs(app, "nowhere")).sink("out", sinks.memory())
    columns = [pa.schema([s.field(n) for n in some]) for s, some in zip((AUCTION, BID), COLUMNS[name], strict=True)]
    return StepHarness(app, step, columns, instances=2)


def epochs(name: str, step: StepHarness, case: Case) -> list[Row]:
    """All rows in their order. Two more epochs, an hour later, close everything."""
    found = []
    for auctions, bids in case.epochs:
        some = [{n: row[n] for n in COLUMNS[name][0]} for row in auctions]
        found += step.epoch(some, [{n: row[n] for n in COLUMNS[name][1]} for row in bids])
        step.instances = 5 - step.instances
    late = {n: 0 if BID.field(n).type == pa.int64() else "" for n in COLUMNS[name][1]} | {"date_time": at(3_600_000)}
    last: Row = {"id": 99, "date_time": at(3_600_000), "expires": at(3_600_000)}
    blank = {n: "" if AUCTION.field(n).type == pa.string() else 0 for n in COLUMNS[name][0]}
    found += step.epoch([blank | last], [late | {"auction": 98}])
    found += step.epoch([], [])
    assert step.keys == 2, "all but the two of an hour later are forgotten"
    assert not step.late_rows
    return found


@given(cases())
def test_an_auction_has_its_best_bid(case: Case) -> None:
    newest = {row["id"]: row for row in epochs("q9", harness("q9", "winning"), case)}
    assert newest == {
        auction["id"]: auction
        | {"bidder": best["bidder"], "price": best["price"]}
        | {"bid_date_time": best["date_time"], "bid_extra": best["extra"]}
        for auction in case.auctions
        for best in case.valid(auction)[:1]
    }


@given(cases())
def test_a_category_is_told_what_bids_add(case: Case) -> None:
    found: Counter[tuple[str, int]] = Counter()
    for row in epochs("q4", harness("q4", "raised"), case):
        found["price", row["category"]] += row["more"]
        found["auctions", row["category"]] += row["auctions"]
    expected: Counter[tuple[str, int]] = Counter()
    for auction in case.auctions:
        for best in case.valid(auction)[:1]:
            expected["price", auction["category"]] += best["price"]
            expected["auctions", auction["category"]] += 1
    assert found == expected


@given(cases())
def test_an_auction_that_closes_has_been_sold_once(case: Case) -> None:
    found = epochs("q6", harness("q6", "closed"), case)
    expected = [
        {"seller": auction["seller"], "auction": auction["id"], "expires": auction["expires"], "price": best["price"]}
        for auction in case.auctions
        for best in case.valid(auction)[:1]
    ]
    assert sorted(found, key=lambda row: row["auction"]) == expected


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 999)), max_size=60), st.lists(st.integers(0, 60), max_size=4)
)
def test_a_seller_has_the_mean_of_the_last_ten(sold: list[tuple[int, int]], cuts: list[int]) -> None:
    rows = [
        {"seller": seller, "auction": number, "expires": at(number // 2), "price": price}
        for number, (seller, price) in enumerate(sold)
    ]
    app = App("q6")
    stream_of(CATALOGUE["q6"])(Inputs(app, "nowhere")).sink("out", sinks.memory())
    step = StepHarness(
        app, "averages", {"seller": int, "auction": int, "expires": AUCTION.field("expires").type, "price": int}
    )
    edges = [0, *sorted(cuts), len(rows)]
    found = [row for first, end in itertools.pairwise(edges) for row in step.epoch(rows[first:end][::-1])]
    expected = []
    for number, row in enumerate(rows):
        last = [r["price"] for r in rows[: number + 1] if r["seller"] == row["seller"]][-10:]
        expected.append(
            {"seller": row["seller"], "auction": number, "expires": row["expires"], "average": sum(last) / len(last)}
        )
    assert sorted(found, key=lambda row: row["auction"]) == expected

"""The events of the auction: always the same, whatever the parts, and in the shares that are promised."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.errors import BadValue
from springtide.workloads.nexmark import events, files
from springtide.workloads.nexmark.events import Tables, part, tables

NAMES = ("person", "auction", "bid")


def joined(parts: list[Tables]) -> Tables:
    return Tables(*(pa.concat_tables([getattr(p, name) for p in parts]) for name in NAMES))


def same(some: Tables, others: Tables) -> bool:
    return all(getattr(some, name).equals(getattr(others, name)) for name in NAMES)


@given(st.lists(st.integers(0, 25_000), max_size=5), st.integers(0, 2**40), st.sampled_from([1, 400, 9_999, 10_000]))
@settings(max_examples=20)
def test_parts_together_are_the_whole(cuts: list[int], seed: int, events_s: int) -> None:
    edges = [0, *sorted(cuts), 25_000]
    parts = [part(first, end, seed, events_s=events_s) for first, end in itertools.pairwise(edges)]
    assert same(joined(parts), tables(25_000, seed, events_s=events_s))


def test_each_part_has_its_events_alone() -> None:
    for event in range(120):
        one = part(event, event + 1)
        assert sum(getattr(one, name).num_rows for name in NAMES) == 1
        [table] = [getattr(one, name) for name in NAMES if getattr(one, name).num_rows]
        assert table["date_time"].cast(pa.int64())[0].as_py() == events.time_us(event)


def test_another_seed_gives_other_events() -> None:
    assert same(tables(500, 7), tables(500, 7))
    assert not same(tables(500, 7), tables(500, 8))


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    made = tables(100_000)
    assert [getattr(made, name).num_rows for name in NAMES] == [2000, 6000, 92_000]
    for table in (made.person, made.auction):
        assert table["id"].to_pylist() == list(range(1000, 1000 + table.num_rows))
    for name in NAMES:
        times = getattr(made, name)["date_time"].cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()
        assert times[0] - events.START_US <= 1000
        assert times[-1] - events.START_US <= 10_000_000


def test_the_hot_ones_have_their_share() -> None:
    made = tables(100_000)
    share = {
        "auction": np.mean(made.bid["auction"].to_numpy() % 100 == 0),
        "bidder": np.mean(made.bid["bidder"].to_numpy() % 100 == 1),
        "seller": np.mean(made.auction["seller"].to_numpy() % 100 == 0),
        "channel": np.mean(~pc.starts_with(made.bid["channel"], "channel-").to_numpy()),
    }
    assert share == pytest.approx({"auction": 0.5, "bidder": 0.75, "seller": 0.75, "channel": 0.5}, abs=0.02)


def test_values_are_in_their_ranges() -> None:
    made = tables(100_000)
    price = made.bid["price"].to_numpy()
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    assert [np.mean(price < 10**power) for power in (3, 4, 5, 6, 7)] == pytest.approx(
        [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6], abs=0.02
    )
    lives = pc.subtract(made.auction["expires"], made.auction["date_time"]).cast(pa.int64()).to_numpy()
    assert lives.min() >= 1000
    assert lives.max() <= 4_000_000
    assert set(made.auction["category"].to_pylist()) == {10, 11, 12, 13, 14}
    assert (made.auction["reserve"].to_numpy() > made.auction["initial_bid"].to_numpy()).all()
    urls = Counter(zip(made.bid["channel"].to_pylist(), made.bid["url"].to_pylist(), strict=True))
    assert len(urls) == len({channel for channel, _ in urls}), "a channel has one URL"
    assert sum("channel_id=" in url for _, url in urls) / len(urls) == pytest.approx(0.9, abs=0.02)


def test_files_hold_the_events_in_parts_of_the_same_time(tmp_path: Path) -> None:
    place = files.write(tmp_path / "data", 3000, 5, parts=4)
    found = [
        Tables(*(pq.read_table(place / name / f"part-{number:05d}.parquet") for name in NAMES)) for number in range(4)
    ]
    assert same(joined(found), tables(3000, 5))
    ends = [max(getattr(t, name)["date_time"][-1].as_py() for name in NAMES) for t in found]
    starts = [min(getattr(t, name)["date_time"][0].as_py() for name in NAMES) for t in found]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    ages = [path.stat().st_mtime for path in sorted((place / "bid").iterdir())]
    assert ages == sorted(set(ages)), "whoever reads by age reads them in order"


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="0 <= first <= end"):
        part(5, 4)
    with pytest.raises(BadValue, match="events a second"):
        tables(10, events_s=0)
    with pytest.raises(BadValue, match="1 or more parts"):
        files.write(tmp_path, 10, parts=0)

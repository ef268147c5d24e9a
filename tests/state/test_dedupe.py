"""Deduplication against an oracle, for ever and within a span of event time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Canon, Farm, Hash, Row, canon_row, good_hash, multiset

from springtide.state.dedupe import DedupeLogic, Within

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
KEY = pa.schema([("k", pa.float64()), ("s", pa.string())])
ROWS = pa.schema([("id", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC")), ("k", pa.float64())])


def at(us: int) -> datetime:
    return BEGINNING + timedelta(microseconds=us)


def us(time: datetime) -> int:
    return (time - BEGINNING) // timedelta(microseconds=1)


def dedupe(within: Within | None = None, hash_of: Hash = good_hash) -> Farm:
    return Farm(DedupeLogic(KEY, ROWS, within), ROWS, hash_of, 4, [0, 1, 0, 1])


keys = st.tuples(st.sampled_from([0.0, -0.0, float("nan"), 1.0, None]), st.sampled_from(["", "ä", None]))
times = st.one_of(st.none(), st.integers(-30, 60).map(at))
epochs = st.lists(st.lists(st.lists(st.tuples(keys, times), max_size=5), max_size=2), max_size=8)
hashes = st.sampled_from(list(HASHES.values()))


def numbered(parts: list[list[list[tuple[tuple[Any, Any], Any]]]]) -> list[list[list[Row]]]:
    """Rows with an id each, so that the oracle can tell them apart."""
    ids = iter(range(10**6))
    return [[[{"id": next(ids), "s": s, "t": t, "k": k} for (k, s), t in part] for part in epoch] for epoch in parts]


def flat(parts: list[list[Row]]) -> list[Row]:
    return [row for part in parts for row in part]


@settings(max_examples=50, deadline=None)
@given(drawn=epochs, hash_of=hashes)
def test_for_ever_the_first_row_of_each_key_comes_through(drawn: Any, hash_of: Hash) -> None:
    farm = dedupe(hash_of=hash_of)
    seen: set[Canon] = set()
    for parts in numbered(drawn):
        expected = []
        for row in flat(parts):
            if canon_row(row, KEY.names) not in seen:
                seen.add(canon_row(row, KEY.names))
                expected.append(row)
        result = farm.epoch(*parts)
        assert multiset(result.output) == multiset(expected)
        assert (result.late_rows, result.malformed_rows) == (0, 0), "without a span no row is late"
        assert farm.keys == len(seen)


@settings(max_examples=100, deadline=None)
@given(drawn=epochs, hash_of=hashes, span=st.integers(0, 30))
def test_within_a_span_a_key_is_forgotten_when_event_time_is_past_it(drawn: Any, hash_of: Hash, span: int) -> None:
    farm = dedupe(Within("t", span), hash_of)
    remembered: dict[Canon, int] = {}
    newest: int | None = None
    watermark = -(10**9)
    for parts in numbered(drawn):
        if newest is not None:
            watermark = max(watermark, newest - span)
        remembered = {k: t for k, t in remembered.items() if t > watermark}
        expected, late, malformed = [], 0, 0
        for row in flat(parts):
            if row["t"] is None:
                malformed += 1
                continue
            key, time = canon_row(row, KEY.names), us(row["t"])
            newest = time if newest is None else max(newest, time)
            if time <= watermark:
                late += 1
            elif key not in remembered:
                remembered[key] = time
                expected.append(row)
        result = farm.epoch(*parts)
        assert multiset(result.output) == multiset(expected)
        assert (result.late_rows, result.malformed_rows) == (late, malformed)
        assert farm.keys == len(remembered) == len(farm.stored())
    farm.newest_us = 10**9
    farm.epoch()
    assert (farm.keys, farm.stored(), farm.runs) == (0, [], ())


def test_a_key_that_expires_and_returns_in_one_epoch_is_counted_once() -> None:
    farm = dedupe(Within("t", 10))
    farm.epoch([{"id": 1, "s": "", "t": at(0), "k": 1.0}, {"id": 2, "s": "", "t": at(20), "k": 2.0}])
    result = farm.epoch([{"id": 3, "s": "", "t": at(21), "k": 1.0}])
    assert [r["id"] for r in result.output] == [3]
    assert farm.keys == 2


def test_the_first_row_is_the_first_that_came_however_many_follow() -> None:
    """Rows of one partition keep their order, so that a replay lets the same row through."""
    farm = dedupe()
    rows = [{"id": i, "s": "", "t": None, "k": float(i % 3)} for i in range(3000)]
    assert sorted(r["id"] for r in farm.epoch(rows[:2000], rows[2000:]).output) == [0, 1, 2]


def test_the_time_may_be_part_of_the_key() -> None:
    key = pa.schema([("t", pa.timestamp("us", "UTC"))])
    farm = Farm(DedupeLogic(key, ROWS, Within("t", 5)), ROWS, good_hash, 4)
    rows = [{"id": i, "s": "", "t": at(t), "k": 0.0} for i, t in enumerate([1, 1, 2, 20])]
    assert sorted(r["id"] for r in farm.epoch(rows).output) == [0, 2, 3]
    assert farm.epoch([{"id": 9, "s": "", "t": at(1), "k": 0.0}]).late_rows == 1
    assert farm.keys == 1


def test_rows_come_out_with_the_columns_they_came_with() -> None:
    farm = dedupe()
    row = {"id": 7, "s": "日本", "t": at(5), "k": 2.5}
    assert farm.epoch([row]).output == [row]
    assert farm.logic.output == ROWS

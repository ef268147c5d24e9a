"""Sessions against plain Python, and a million interleavings against SQL: each comes once, and is whole."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.errors import BadType, BadValue
from springtide.state.aggregate import AggregateLogic
from springtide.state.chain import Chain
from springtide.state.logic import BEGINNING_US, Logic, Moment
from springtide.state.position import positions
from springtide.state.run import Run
from springtide.state.session import Gap, SessionLogic
from springtide.state.update import update
from springtide.state.window import Window
from springtide.state.xxhash import hash_integers
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GAP_S = 10
ROWS = {"k": str, "at": datetime, "v": int}
Row = dict[str, Any]


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def harness(instances: int = 1, late: str = "0 seconds", **options: Any) -> StepHarness:
    app = App("app", slices=8)
    rows = app.source("rows", sources.generator(1)).key_by("k").session("at", f"{GAP_S} seconds", late=late, **options)
    rows.aggregate("visits", n=agg.count(), total=agg.sum("v"), best=agg.top_k("v", 2)).sink("out", sinks.memory())
    return StepHarness(app, "visits", ROWS, instances=instances, hash=lambda key: stable_hash(key) % 3 << 61)


def sessions(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Of all rows of all keys: key, first and last time, and values."""
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (str(row["k"]), row["at"])):
        last = found[-1][-1] if found else None
        if last is not None and last["k"] == row["k"] and row["at"] - last["at"] < timedelta(seconds=GAP_S):
            found[-1].append(row)
        else:
            found.append([row])
    return [(s[0]["k"], s[0]["at"], s[-1]["at"] + timedelta(seconds=GAP_S), sorted(r["v"] for r in s)) for s in found]


def bag(found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    best = [(k, start, end, len(v), sum(v), tuple(sorted(v, reverse=True)[:2])) for k, start, end, v in found]
    return Counter(best)


def seen(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    names = ("k", "session_start", "session_end", "n", "total")
    return Counter((*(row[name] for name in names), tuple(row["best"])) for row in rows)


epochs_of_rows = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 60), st.integers(-5, 5)), max_size=10),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(epochs_of_rows, st.integers(0, 30), st.lists(st.integers(1, 4), min_size=1))
def test_each_session_comes_once_and_whole(epochs: list[Any], late_s: int, instances: list[int]) -> None:
    """However rows come: times go up and down, keys collide, slices change hands."""
    visits = harness(late=f"{late_s} seconds")
    accepted: list[Row] = []
    newest: datetime | None = None
    watermark: datetime | None = None
    finals: list[Row] = []
    late = 0
    for number, drawn in enumerate([*epochs, [("far", 100_000, 1)], []]):
        rows = [{"k": k, "at": at(s), "v": v} for k, s, v in drawn]
        if newest is not None:
            watermark = max(watermark or newest - timedelta(days=1), newest - timedelta(seconds=late_s))
        in_time = [row for row in rows if watermark is None or row["at"] >= watermark]
        late += len(rows) - len(in_time)
        accepted += in_time
        newest = max([row["at"] for row in rows] + ([newest] if newest else []), default=None)
        visits.instances = instances[number % len(instances)]
        found = visits.epoch(rows)
        finals += [row for row in found if row["final"]]
        expected = sessions(accepted)
        over = [s for s in expected if watermark is not None and s[2] <= watermark]
        assert seen(finals) == bag(over)
        touched = {(row["k"], row["at"]) for row in in_time}
        changed = [s for s in expected if any(k == s[0] and s[1] <= t < s[2] for k, t in touched)]
        assert seen([row for row in found if not row["final"]]) == bag(changed)
        assert visits.late_rows == late
    assert [row["k"] for row in visits.state()] == ["far"]
    assert visits.keys == 1


def test_rows_without_a_time_or_of_a_far_future_are_counted() -> None:
    visits = harness()
    ahead = datetime(9999, 1, 1, tzinfo=UTC)
    assert visits.epoch([{"k": "a", "at": None, "v": 1}, {"k": "a", "at": ahead, "v": 1}]) == []
    assert (visits.malformed_rows, visits.ahead_rows, visits.keys, visits.watermark_us) == (1, 1, 0, None)


def test_a_session_goes_on_by_half_a_gap_at_a_time_and_ends_after_a_whole_one() -> None:
    visits = harness()
    for second in range(0, 50, GAP_S // 2):
        assert [row["n"] for row in visits.epoch([{"k": "a", "at": at(second), "v": 1}])] == [second // 5 + 1]
    assert [row["n"] for row in visits.epoch([{"k": "a", "at": at(45 + GAP_S), "v": 1}])] == [1], "a gap is enough"
    assert [(row["n"], row["final"]) for row in visits.epoch([])] == [(10, True)]


@pytest.mark.parametrize("key", ["n.0", "$first", "$last"])
def test_a_key_may_be_named_like_a_column_of_the_state(key: str) -> None:
    app = App("app", slices=8)
    visits = app.source("rows", sources.generator(1)).key_by(key).session("at", "1 second")
    visits.aggregate("visits", n=agg.count(), most=agg.max(key)).sink("out", sinks.noop())
    step = StepHarness(app, "visits", {key: str, "at": datetime})
    step.epoch([{key: "a", "at": at(0)}, {key: "b", "at": at(1)}])
    assert [(row[key], row["n"], row["most"], row["final"]) for row in step.epoch([])] == [("a", 1, "a", True)]


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(BadValue, match="gap must be positive"):
        App("app").source("rows", sources.generator(1)).key_by("k").session("at", "0 seconds")
    app = App("app")
    app.source("rows", sources.generator(1)).key_by("k").session("v", "1 second").aggregate("s", n=agg.count()).sink(
        "out", sinks.noop()
    )
    with pytest.raises(BadType, match="'v' to be a timestamp"):
        StepHarness(app, "s", ROWS)


KEYS, EACH, EPOCHS, BATCHES = 250_000, 6, 5, 4
SECOND = 1_000_000


@pytest.mark.parametrize("kind", ["session", "window"])
def test_a_million_interleavings_give_each_final_row_once(kind: str) -> None:
    """Every key's rows come in an order and in epochs of their own; what is late is what the watermark says."""
    for batch in range(BATCHES):
        random_ = np.random.default_rng([batch, len(kind)])
        key = np.repeat(np.arange(KEYS), EACH)
        times = random_.integers(0, 60, KEYS * EACH) * SECOND
        epoch = np.clip(times // (12 * SECOND) + random_.integers(-1, 2, KEYS * EACH), 0, EPOCHS - 1)
        shuffled = random_.permutation(KEYS * EACH)
        key, times, epoch = key[shuffled], times[shuffled], epoch[shuffled]
        rows = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us"))])
        schema, count = pa.schema([rows.field("k")]), {"n": agg.count()}
        if kind == "session":
            logic: Logic = SessionLogic(schema, rows, count, Gap("at", GAP_S * SECOND, 8 * SECOND))
        else:
            logic = AggregateLogic(schema, rows, count, 8, Window("at", GAP_S * SECOND, GAP_S * SECOND, 8 * SECOND))
        chain, finals, accepted = Chain([], logic.layout), [], []
        watermark, newest = BEGINNING_US, BEGINNING_US
        for number in range(EPOCHS + 2):
            mine = np.flatnonzero(epoch == number)
            own_key, own_times = key[mine], times[mine]
            if number == EPOCHS:  # Time goes on, far beyond all.
                own_key, own_times = np.array([KEYS]), np.array([10**6 * SECOND])
            before, watermark = watermark, max(watermark, newest - 8 * SECOND)
            open_until = (
                own_times if kind == "session" else own_times // (GAP_S * SECOND) * GAP_S * SECOND + GAP_S * SECOND - 1
            )
            in_time = open_until >= watermark
            accepted.append((own_key[in_time], own_times[in_time]))
            table = pa.table({"at": pa.array(own_times).cast(pa.timestamp("us"))})
            keys = [pa.array(own_key)]
            moment = Moment(watermark, before)
            arrival = logic.arrive(positions(hash_integers(keys[0]), 8), keys, table, moment)
            assert arrival.late_rows == int((~in_time).sum())
            newest = max(newest, *arrival.newest_us)
            updated = update(logic, chain, [arrival.rows], moment)
            gone = {id(run) for run in updated.replaced}
            runs = [run for run in chain.runs if id(run) not in gone]
            chain = Chain([*runs, Run(updated.run, logic.layout, 8)] if updated.run is not None else runs, logic.layout)
            finals.append(updated.output.filter(updated.output.column("final")))
        found = pa.concat_tables(finals)
        rows_in_time = pa.table(
            {"k": np.concatenate([k for k, _ in accepted]), "t": np.concatenate([t for _, t in accepted])}
        )
        assert _counted(found, kind) == _expected(rows_in_time, kind)


def _expected(accepted: pa.Table, kind: str) -> list[tuple[int, ...]]:
    """Rows, finals, and checksums of keys, starts and counts, by SQL."""
    query = f"SELECT k, t // {GAP_S * SECOND} * {GAP_S * SECOND} AS s, count(*) AS n FROM accepted GROUP BY ALL"
    if kind == "session":
        query = f"""
            WITH begun AS (SELECT k, t, coalesce(t - lag(t) OVER w >= {GAP_S * SECOND}, true) AS b FROM accepted
                           WINDOW w AS (PARTITION BY k ORDER BY t)),
            numbered AS (SELECT k, t, sum(b::INT) OVER (PARTITION BY k ORDER BY t) AS number FROM begun)
            SELECT k, min(t) AS s, count(*) AS n FROM numbered GROUP BY k, number"""
    return _checksum(query, accepted, KEYS)


def _counted(finals: pa.Table, kind: str) -> list[tuple[int, ...]]:
    start = "session_start" if kind == "session" else "window_start"
    return _checksum(f"SELECT k, epoch_us({start}) AS s, n FROM accepted", finals, KEYS)


def _checksum(query: str, accepted: pa.Table, below: int) -> list[tuple[int, ...]]:
    """As multisets: how many rows there are, and the sums of hashes of each."""
    with duckdb.connect() as connection:
        connection.register("accepted", accepted)
        told = f"SELECT count(*), sum(n), sum(hash(k, s, n)::HUGEINT) FROM ({query}) WHERE k < {below}"
        return [tuple(map(int, row)) for row in connection.execute(told).fetchall()]

"""What the sinks of the meeting app must hold: joins and sessions by SQL over all rows, timers key by key."""

from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from chaos_app import DISORDER_S, EPOCH_ROWS, START_S
from join_app import GAP_S, HIGH_S, LOW_S, SEEDS, spec
from join_oracle import Bag
from meeting_app import AGAIN_S, CANCELS, MANY, TTL_S, WAIT_S

SECOND = 1_000_000
LATE = DISORDER_S * SECOND
NEVER = 1 << 62

JOINED = f"""
WITH pairs AS (
    SELECT l.k, l.us, l.x, r.us AS us_right, r.x AS y FROM lefts l JOIN rights r
    ON l.k = r.k AND r.us - l.us BETWEEN {LOW_S * SECOND} AND {HIGH_S * SECOND})
SELECT * FROM pairs
UNION ALL SELECT k, us, x, NULL, NULL FROM lefts
    WHERE us + {HIGH_S * SECOND} < $both AND x NOT IN (SELECT x FROM pairs)
UNION ALL SELECT k, NULL, NULL, us, x FROM rights
    WHERE us - {LOW_S * SECOND} < $both AND x NOT IN (SELECT y FROM pairs)
"""
OVER = f"""
WITH marked AS (
    SELECT *, (us - lag(us) OVER (PARTITION BY k ORDER BY us, x) < {int(GAP_S * SECOND)}) IS NOT TRUE AS begins
    FROM lefts),
numbered AS (SELECT *, sum(begins::INT) OVER (PARTITION BY k ORDER BY us, x) AS session FROM marked)
SELECT k, min(us), count(*), sum(x)::BIGINT FROM numbered GROUP BY k, session
HAVING max(us) + {int(GAP_S * SECOND)} <= $left
"""


def check(root: Path, epochs: int, keys: int) -> None:
    """The sinks hold what the rows of all epochs give, as multisets."""
    lefts, rights = (_rows(side, epochs, keys) for side in SEEDS)
    left, right = (_watermarks(rows, epochs) for rows in (lefts, rights))
    with duckdb.connect() as base:
        base.register("lefts", lefts)
        base.register("rights", rights)
        joined = base.execute(JOINED, {"both": min(left[-1], right[-1])}).fetchall()
        over = base.execute(OVER, {"left": left[-1]}).fetchall()
    _same("joined", published(root, "joined", ["k", "at", "x", "at_right", "y"]), Bag(joined))
    _same("over", published(root, "over", ["k", "session_start", "n", "total"]), Bag(over))
    _same("rings", published(root, "rings", ["k", "n", "at"]), _rings(lefts, left))


def _same(sink: str, found: Bag, expected: Bag) -> None:
    assert expected, f"{sink}: nothing to compare"
    assert (found - expected, expected - found) == (Bag(), Bag()), f"{sink}: rows too many, rows too few"


def published(root: Path, sink: str, columns: list[str]) -> Bag:
    """The rows of a sink, times in microseconds."""
    files = [pq.ParquetFile(file).read(columns) for file in (root / sink).glob("epoch=*/*.parquet")]
    return Bag(tuple(row.values()) for file in files for row in _in_microseconds(file).to_pylist())


def _rows(side: str, epochs: int, keys: int) -> pa.Table:
    """All rows of a side, and the epoch in which each came."""
    made = spec(side, epochs, keys).rows(0, epochs * EPOCH_ROWS, START_S)
    rows = _in_microseconds(made.select(["key", "event_time", "id"])).rename_columns(["k", "us", "x"])
    return rows.append_column("epoch", pa.array([number // EPOCH_ROWS for number in range(rows.num_rows)]))


def _in_microseconds(table: pa.Table) -> pa.Table:
    kinds = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


def _watermarks(rows: pa.Table, epochs: int) -> list[int]:
    """By epoch: the newest time of all epochs before it, less what may be late."""
    times = rows["us"].to_numpy()
    return [int(times[: epoch * EPOCH_ROWS].max()) - LATE if epoch else -NEVER for epoch in range(epochs)]


def _rings(rows: pa.Table, watermarks: list[int]) -> Bag:
    """What timers have told by the last epoch."""
    found = Bag()
    for _, of_key in groupby(sorted(rows.to_pylist(), key=lambda row: (row["k"], row["epoch"])), lambda row: row["k"]):
        found += _of_key({epoch: list(some) for epoch, some in groupby(of_key, lambda row: row["epoch"])}, watermarks)
    return found


def _of_key(by_epoch: dict[int, list[dict[str, Any]]], watermarks: list[int]) -> Bag:
    told, count, timer, until = Bag(), 0, NEVER, NEVER
    for epoch, now in enumerate(watermarks):
        if timer <= now and timer < until:
            told[by_epoch[min(by_epoch)][0]["k"], count, now] += 1
            count, timer, until = (0, now + int(AGAIN_S * SECOND), until) if count > MANY else (0, NEVER, NEVER)
        if until <= now:
            count, timer, until = 0, NEVER, NEVER
        if rows := by_epoch.get(epoch):
            newest = max(row["us"] for row in rows)
            count += len(rows)
            until = max(newest + int(TTL_S * SECOND), 0 if until == NEVER else until)
            if any(row["x"] % CANCELS == 0 for row in rows):
                timer = NEVER
            elif timer == NEVER:
                timer = newest + int(WAIT_S * SECOND)
    return told

"""Fault 26: odd keys, each counted as one, and different ones never mixed, not even when their hashes collide."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from spark_hash import colliding_pairs
from spark_kit import Row, frozen, parquet_epochs

from springtide import App, agg, sinks
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]
NAN = float("nan")
MEGABYTE = "x" * (1 << 20)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

STRINGS = [None, "", " ", "a", "A", "a\0", "\u00e4", "a\u0308", "日本語", "🌊", "null", "NaN"]
STRINGS += [MEGABYTE + "1", MEGABYTE + "2"]
LONGS = [None, 0, 1, -1, (1 << 63) - 1, -(1 << 63)]
FLOATS = [None, 0.0, -0.0, NAN, -NAN, 1.5, -1.5, float("inf"), float("-inf"), 5e-324]
BINARY = [None, b"", b"\0", b"\0\0", b"a", "ä".encode()]
MONEY = [None, Decimal("0.00"), Decimal("-0.00"), Decimal("12.30"), Decimal("-12.30")]
FLAGS = [None, True, False]
DAYS = [None, date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]
TIMES = [None, NOON, NOON + timedelta(microseconds=1), datetime(1969, 12, 31, tzinfo=UTC)]

SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("b", pa.binary()),
        ("money", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
DDL = "s STRING, n BIGINT, d DOUBLE, f FLOAT, b BINARY, money DECIMAL(10,2), flag BOOLEAN, day DATE, at TIMESTAMP"
KEYS = (("s",), ("n",), ("d",), ("f",), ("b", "money", "flag"), ("day", "at"), ("d", "s"))


def made(epochs: int) -> list[list[Row]]:
    """Each column runs through its odd values at its own pace."""
    floats32 = [None if v is None else 0.5 if v == 5e-324 else v for v in FLOATS]
    columns = (STRINGS, LONGS, FLOATS, floats32, BINARY, MONEY, FLAGS, DAYS, TIMES)
    rows = zip(*(cycle(column) for column in columns), strict=True)
    return [[dict(zip(SCHEMA.names, row, strict=True)) for row in islice(rows, 37)] for _ in range(epochs)]


def test_odd_keys(run_app: RunApp, tmp_path: Path) -> None:
    epochs = made(3)
    app = App("odd-keys")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    out = {key: sinks.memory() for key in KEYS}
    for key, sink in out.items():
        rows.key_by(*key).aggregate("by-" + "-".join(key), count=agg.count()).sink("out-" + "-".join(key), sink)
    run_app(app)
    for key, sink in out.items():
        expected: Counter[Any] = Counter(_key(row, key) for rows in epochs for row in rows)
        found: dict[Any, int] = {}
        for epoch in sorted(sink.epochs):
            of_epoch = [(_key(row, key), row["count"]) for row in sink.epochs[epoch].to_pylist()]
            assert len({k for k, _ in of_epoch}) == len(of_epoch), "a key comes once an epoch"
            found |= dict(of_epoch)
        assert found == expected, key


def _key(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple((type(row[name]), frozen(row[name])) for name in names)


def test_columns_with_odd_names(run_app: RunApp, tmp_path: Path) -> None:
    """Spaces, dashes, quotes and other letters in the names of keys and values, and words of our own."""
    names = ("a-b", "c d", "é", "g'h", "$hash", "instance")
    schema = pa.schema([(name, pa.int64()) for name in names])
    epochs = [[dict(zip(names, range(i, i + 6), strict=True)) for i in (0, 1, 1, 2)] for _ in range(2)]
    ddl = ", ".join(f"`{name.replace('`', '``')}` BIGINT" for name in names)
    app, out, firsts = App("odd-names"), sinks.memory(), sinks.memory()
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, schema, ddl))
    totals = {f"t{i}": agg.sum(name) for i, name in enumerate(names)}
    rows.key_by("a-b", "é", "$hash").aggregate("sums", **totals).sink("out", out)
    rows.key_by("c d", "g'h", "instance").dedupe("firsts").sink("firsts-out", firsts)
    run_app(app)
    last = {(row["a-b"], row["é"], row["$hash"]): [row[t] for t in totals] for row in out.rows()}
    times = {0: 2, 1: 4, 2: 2}
    assert last == {(i, i + 2, i + 4): [n * (i + at) for at in range(6)] for i, n in times.items()}
    assert sorted(row["c d"] for row in firsts.rows()) == [1, 2, 3]


def test_keys_whose_hashes_collide(run_app: RunApp, spark: "SparkSession", tmp_path: Path) -> None:
    pairs = colliding_pairs(7)
    hashes = spark.createDataFrame(pairs, "a BIGINT, b BIGINT").select(F.xxhash64("a", "b").alias("hash"))
    assert len({row["hash"] for row in hashes.collect()}) == 1, "Spark hashes otherwise than this test thinks"

    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("id", pa.int64())])
    choice = [[0, 1, 2, 1, 0], [3, 1, 3, 4], [6, 5, 4, 3, 2, 1, 0], [2, 2]]
    epochs = [[{"a": pairs[i][0], "b": pairs[i][1], "id": 10 * i + at} for at, i in enumerate(of)] for of in choice]
    app = App("collisions")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, schema, "a BIGINT, b BIGINT, id BIGINT"))
    counts, firsts = sinks.memory(), sinks.memory()
    rows.key_by("a", "b").aggregate("count", n=agg.count(), total=agg.sum("id")).sink("counts", counts)
    rows.key_by("a", "b").dedupe("first").sink("firsts", firsts)
    run_app(app)

    everything = [row for of_epoch in epochs for row in of_epoch]
    ids = {pair: [row["id"] for row in everything if (row["a"], row["b"]) == pair] for pair in pairs}
    found = {(row["a"], row["b"]): (row["n"], row["total"]) for row in counts.rows()}
    assert found == {pair: (len(of), sum(of)) for pair, of in ids.items()}
    assert sorted(row["id"] for row in firsts.rows()) == sorted(of[0] for of in ids.values())

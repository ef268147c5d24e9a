"""Decimals, first and last values, lists and sketches on Spark: their types, and their state over a restart."""

import random
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from operators_kit import RunApp, grouped
from spark_kit import Row, bag, parquet_epochs

from springtide import App, agg, sinks

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.string()), ("at", pa.int64()), ("paid", pa.decimal128(12, 2)), ("user", pa.string())])
DDL = "k STRING, at BIGINT, paid DECIMAL(12, 2), user STRING"
EPOCHS, EPOCH_ROWS = 3, 800


def made() -> list[list[Row]]:
    random_ = random.Random(5)

    def row() -> Row:
        return {
            "k": random_.choices(["few", "many"], [1, 9])[0],
            "at": random_.randint(0, 10**6),
            "paid": None if random_.random() < 0.1 else Decimal(random_.randint(-(10**11), 10**11)).scaleb(-2),
            "user": f"user-{random_.randint(0, 999)}",
        }

    return [[row() for _ in range(EPOCH_ROWS)] for _ in range(EPOCHS)]


def exact(key: str, rows: list[Row]) -> Row:
    paid = sorted(row["paid"] for row in rows if row["paid"] is not None)
    by_time = sorted(rows, key=lambda row: (row["at"], row["user"]))
    return {
        "k": key,
        "total": sum(paid),
        "usual": (sum(paid) / len(paid)).quantize(Decimal("1e-6"), ROUND_HALF_UP),
        "most": paid[-1],
        "opened": by_time[0]["user"],
        "closed": by_time[-1]["user"],
        "all": paid,
    }


def test_what_is_exact_is_that_of_plain_python_and_what_is_not_is_close(run_app: RunApp, tmp_path: Path) -> None:
    epochs = made()
    files = parquet_epochs(tmp_path / "rows", epochs, SCHEMA, DDL)
    collected = sinks.memory()

    def app() -> App:
        found = App("exact")
        wanted = {
            "total": agg.sum("paid"),
            "usual": agg.mean("paid"),
            "most": agg.max("paid"),
            "opened": agg.first("user", by="at"),
            "closed": agg.last("user", by="at"),
            "all": agg.collect("paid"),
            "users": agg.approx_distinct("user"),
            "spread": agg.approx_quantile("paid", (0.05, 0.5, 1)),
        }
        found.source("rows", files).key_by("k").aggregate("step", **wanted).sink("out", collected)
        return found

    places = {"checkpoint": str(tmp_path / "checkpoint"), "local": str(tmp_path / "local")}
    run_app(app(), until="epochs=2", **places)
    run_app(app(), **places)
    assert sorted(collected.epochs) == [0, 1, 2]
    seen: list[Row] = []
    for epoch, rows in enumerate(epochs):
        seen += rows
        found = collected.epochs[epoch]
        kinds = [found.schema.field(name).type for name in ("total", "usual", "most")]
        assert kinds == [pa.decimal128(22, 2), pa.decimal128(16, 6), pa.decimal128(12, 2)]
        by_key = grouped(seen)
        assert bag(found.drop_columns(["users", "spread"]).to_pylist()) == bag(exact(k, by_key[k]) for k in by_key)
        for row in found.to_pylist():
            paid = [float(value) for value in row["all"]]
            assert row["users"] == pytest.approx(len({each["user"] for each in by_key[row["k"]]}), rel=0.08)
            assert row["spread"][-1] == paid[-1]
            for share, value in zip((0.05, 0.5), row["spread"], strict=False):
                assert abs((paid.index(value) + 1) / len(paid) - share) <= 0.03

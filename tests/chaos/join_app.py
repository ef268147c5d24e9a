"""An app on several workers that joins two streams in three ways and finds sessions, and what its sinks must hold."""

import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import cluster_app
import pyarrow.parquet as pq
from chaos_app import DISORDER_S, EPOCH_ROWS, START_S
from join_oracle import Bag, JoinOracle, Row, multiset

from springtide import App, agg, sinks, sources
from springtide.connectors.generator.rates import constant
from springtide.connectors.generator.rows import GeneratorSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOW_S, HIGH_S = -1, 2
GAP_S = 0.5
SEEDS = {"left": 11, "right": 12}


def spec(side: str, epochs: int, keys: int) -> GeneratorSpec:
    """An epoch is one and a half seconds of event time."""
    return GeneratorSpec(
        constant(100),
        seed=SEEDS[side],
        limit=epochs * EPOCH_ROWS,
        keys=keys,
        skew=0.8,
        disorder_s=DISORDER_S,
        start_s=START_S,
        max_rows_per_epoch=EPOCH_ROWS,
    )


def lefts(rows: "DataFrame") -> "DataFrame":
    return rows.selectExpr("key AS k", "event_time AS at", "id AS x")


def rights(rows: "DataFrame") -> "DataFrame":
    return rows.selectExpr("key AS id", "event_time AS at", "id AS y")


def both(key: Row, left: list[Row], right: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
    """How many rows each side has had."""
    before = state or {"lefts": 0, "rights": 0}
    after = {"lefts": before["lefts"] + len(left), "rights": before["rights"] + len(right)}
    return after, [{"k": key["k"], **after}]


def build(root: Path, epochs: int, keys: int) -> App:
    """A full join, an as-of join, a co-reducer, and sessions. It goes by the name that the kit looks for."""
    app = App("chaos", slices=16)
    left = app.source("left", sources.Generator(spec("left", epochs, keys))).transform("lefts", lefts).key_by("k")
    right = app.source("right", sources.Generator(spec("right", epochs, keys))).transform("rights", rights).key_by("id")
    late = f"{DISORDER_S} seconds"
    span = (f"{LOW_S} seconds", f"{HIGH_S} seconds")
    joined = left.join("count", right, how="full", time=("at", "at"), within=span, late=late)
    joined.sink("joined", sinks.parquet(str(root / "joined")))
    left.as_of("windows", right, time=("at", "at"), late=late).sink("as-of", sinks.parquet(str(root / "as-of")))
    fields = {"lefts": int, "rights": int}
    counted = left.co_reduce("both", right, both, state=fields, output={"k": int, **fields})
    counted.sink("counts", sinks.parquet(str(root / "counts")))
    visits = left.session("at", f"{GAP_S} seconds", late=late).aggregate("visits", n=agg.count(), total=agg.sum("x"))
    visits.sink("over", sinks.parquet(str(root / "over")), mode="final")
    return app


def check(root: Path, epochs: int, keys: int) -> None:
    """The sinks hold what plain Python makes of the rows of all epochs, as multisets."""
    oracle, counts = JoinOracle("full", LOW_S, HIGH_S, DISORDER_S), Counter[tuple[str, int]]()
    for epoch in range(epochs):
        left, right = (_rows(side, epoch, epochs, keys) for side in SEEDS)
        oracle.epoch(left, right)
        counts.update(("left", row["k"]) for row in left)
        counts.update(("right", row["id"]) for row in right)
    assert multiset(published(root, "joined")) == oracle.expected()
    assert oracle.late == 0
    last = {row["k"]: (row["lefts"], row["rights"]) for row in published(root, "counts")}
    assert last == {key: (counts["left", key], counts["right", key]) for _, key in counts}
    assert multiset(published(root, "as-of")) == _as_of(oracle)
    found = Counter((row["k"], row["session_start"], row["n"], row["total"]) for row in published(root, "over"))
    assert found == _sessions(oracle.lefts, epochs)


def _as_of(oracle: JoinOracle) -> Bag:
    """Each left row that the watermark has passed, with the newest right row at or before it."""
    known: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    for row in oracle.rights:
        known[row["id"]].append((row["at"], row["y"]))
    found = Bag()
    for row in oracle.lefts:
        if oracle.watermark is not None and row["at"] < oracle.watermark:
            before = [each for each in known[row["k"]] if each[0] <= row["at"]]
            found[row["k"], row["at"], row["x"], *max(before, key=lambda each: each[0], default=(None, None))] += 1
    return found


def _sessions(rows: list[Row], epochs: int) -> Bag:
    """Those of the left rows that are over: the rows before the last epoch tell what time it is."""
    newest = max((row["at"] for row in rows[: (epochs - 1) * EPOCH_ROWS]), default=None)
    if newest is None:
        return Bag()
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row["k"], row["at"])):
        last = found[-1][-1] if found else None
        if last is not None and last["k"] == row["k"] and row["at"] - last["at"] < timedelta(seconds=GAP_S):
            found[-1].append(row)
        else:
            found.append([row])
    until = newest - timedelta(seconds=DISORDER_S + GAP_S)
    return Bag((s[0]["k"], s[0]["at"], len(s), sum(row["x"] for row in s)) for s in found if s[-1]["at"] <= until)


def _rows(side: str, epoch: int, epochs: int, keys: int) -> list[Row]:
    rows = spec(side, epochs, keys).rows(epoch * EPOCH_ROWS, (epoch + 1) * EPOCH_ROWS, START_S).to_pylist()
    key, value = ("k", "x") if side == "left" else ("id", "y")
    return [{key: row["key"], "at": row["event_time"], value: row["id"]} for row in rows]


def published(root: Path, sink: str) -> list[Row]:
    """All rows of a sink, in the order of their epochs."""
    files = sorted((root / sink).glob("epoch=*/*.parquet"), key=lambda file: int(file.parent.name[len("epoch=") :]))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


if __name__ == "__main__":
    sys.exit(cluster_app.main(build))

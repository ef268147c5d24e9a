"""An app on several workers whose rows may all have one key, and what its sinks must hold."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import cluster_app
import numpy as np
import pyarrow.parquet as pq
from chaos_app import START_S

from springtide import App, agg, sinks, sources
from springtide.connectors.generator.rates import constant
from springtide.connectors.generator.rows import GeneratorSpec

EPOCH_ROWS = 16_000
"""Few enough for rows to travel as they are: one instance then gets every single one."""
WINDOW_S = 2


def spec(epochs: int, keys: int) -> GeneratorSpec:
    """An epoch is a second of event time."""
    return GeneratorSpec(
        constant(EPOCH_ROWS),
        seed=5,
        limit=epochs * EPOCH_ROWS,
        keys=keys,
        start_s=START_S,
        max_rows_per_epoch=EPOCH_ROWS,
    )


def build(root: Path, epochs: int, keys: int) -> App:
    """A count, a window and the first row of every key. It goes by the name that the kit looks for."""
    app = App("chaos", slices=16)
    rows = app.source("rows", sources.Generator(spec(epochs, keys))).key_by("key")
    rows.aggregate("count", n=agg.count(), total=agg.sum("id")).sink("counts", sinks.parquet(str(root / "counts")))
    windows = rows.window("event_time", f"{WINDOW_S} seconds").aggregate("windows", n=agg.count())
    windows.sink("finals", sinks.parquet(str(root / "finals")), mode="final")
    rows.dedupe("first").sink("firsts", sinks.parquet(str(root / "firsts")))
    return app


def check(root: Path, epochs: int, keys: int) -> None:
    """The sinks hold what numpy makes of the rows of all epochs, as multisets."""
    rows = spec(epochs, keys).rows(0, epochs * EPOCH_ROWS, START_S)
    key, ids = rows["key"].to_numpy(), rows["id"].to_numpy()
    at_s = rows["event_time"].cast("int64").to_numpy() / 1e6
    last = {row["key"]: (row["n"], row["total"]) for row in _published(root, "counts")}
    totals = np.bincount(key, ids, keys)
    assert last == {k: (n, int(totals[k])) for k, n in enumerate(np.bincount(key, minlength=keys).tolist()) if n}
    windows = (at_s // WINDOW_S).astype(np.int64)
    closed = windows * WINDOW_S + WINDOW_S <= at_s[: (epochs - 1) * EPOCH_ROWS].max(initial=0.0)
    expected = Counter(zip(key[closed].tolist(), windows[closed].tolist(), strict=True))
    found = [
        (row["key"], int(row["window_start"].timestamp()) // WINDOW_S, row["n"]) for row in _published(root, "finals")
    ]
    assert Counter(found) == Counter((k, window, n) for (k, window), n in expected.items())
    assert Counter(row["key"] for row in _published(root, "firsts")) == Counter(set(key.tolist()))


def _published(root: Path, sink: str) -> list[dict[str, Any]]:
    """All rows of a sink, in the order of their epochs."""
    files = sorted((root / sink).glob("epoch=*/*.parquet"), key=lambda file: int(file.parent.name[len("epoch=") :]))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


if __name__ == "__main__":
    sys.exit(cluster_app.main(build))

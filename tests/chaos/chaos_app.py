"""The app that the chaos tests kill, and run as a script, a driver process that runs it.

One generator, all of it due at once, feeds three branches with a Parquet sink each: the rows as they
are, a running count by key, and event-time windows of which only the final rows are published.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from springtide import App, agg, sinks, sources
from springtide.dataflow.generator import GeneratorSpec
from springtide.dataflow.rates import constant

EPOCH_ROWS = 150
KEYS = 40
DISORDER_S = 3
WINDOW_S = 5
START_S = 1_700_000_000.0
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a JVM that lives for seconds only."""


def spec(epochs: int, keys: int = KEYS, epoch_rows: int = EPOCH_ROWS) -> GeneratorSpec:
    """The rows of so many epochs; epoch e holds the rows e * EPOCH_ROWS up to the next, if nothing else is said."""
    return GeneratorSpec(
        constant(100),
        seed=11,
        limit=epochs * EPOCH_ROWS,
        keys=keys,
        skew=0.8,
        disorder_s=DISORDER_S,
        start_s=START_S,
        max_rows_per_epoch=epoch_rows,
    )


def build(root: Path, epochs: int, keys: int = KEYS, epoch_rows: int = EPOCH_ROWS) -> App:
    """The app, with its sinks under `root`. No row is ever late: late= is as long as the disorder."""
    app = App("chaos", slices=16)
    rows = app.source("rows", sources.Generator(spec(epochs, keys, epoch_rows)))
    keyed = rows.key_by("key")
    counts = keyed.aggregate("count", n=agg.count(), total=agg.sum("id"))
    windows = keyed.window("event_time", f"{WINDOW_S} seconds", late=f"{DISORDER_S} seconds")
    closed = windows.aggregate("windows", n=agg.count(), total=agg.sum("id"))
    rows.sink("raw", sinks.parquet(str(root / "raw")))
    counts.sink("counts", sinks.parquet(str(root / "counts")))
    closed.sink("finals", sinks.parquet(str(root / "finals")), mode="final")
    return app


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    return run_and_tell(build(options.root, options.epochs), options.root, master=options.master)


def run_and_tell(app: App, root: Path, more: Mapping[str, str] = MappingProxyType({}), **options: Any) -> int:
    """Run an app until its input ends, with its checkpoint below a directory; 1 and a message if it fails.

    Spark gets some more settings.
    """
    settings = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), FAST_START) | more
    places = {"checkpoint": str(root / "checkpoint"), "local": str(root / "local")}
    try:
        app.run(until="available", settings={"spark.driver.memory": "1g", **settings}, **(places | options))
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

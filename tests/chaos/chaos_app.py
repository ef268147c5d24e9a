"""The app that the chaos tests kill, and run as a script, a driver process that runs it.

One generator, all of it due at once, feeds three branches with a Parquet sink each: the rows as they
are, a running count by key, and event-time windows of which only the final rows are published.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from springtide import App, agg, sinks, sources
from springtide.cli.main import plain
from springtide.connectors.generator.rates import constant
from springtide.connectors.generator.rows import GeneratorSpec
from springtide.dataflow.stream import Stream
from springtide.engine.lifecycle.running import Running

EPOCH_ROWS = 150
KEYS = 40
DISORDER_S = 3
LOOK_S = 0.25
WINDOW_S = 5
START_S = 1_700_000_000.0
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a JVM that lives for seconds only."""


def spec(epochs: int, keys: int = KEYS, epoch_rows: int = EPOCH_ROWS) -> GeneratorSpec:
    """The rows of a number of epochs; epoch e holds the rows e * EPOCH_ROWS up to the next, if nothing else is said."""
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
    """The app, with its sinks under `root`."""
    app = App("chaos", slices=16)
    add_branches(app.source("rows", sources.Generator(spec(epochs, keys, epoch_rows))), str(root))
    return app


def add_branches(rows: Stream, place: str) -> None:
    """Its branches, with their sinks at a place. No row is ever late: late= is as long as the disorder."""
    keyed = rows.key_by("key")
    counts = keyed.aggregate("count", n=agg.count(), total=agg.sum("id"))
    windows = keyed.window("event_time", f"{WINDOW_S} seconds", late=f"{DISORDER_S} seconds")
    closed = windows.aggregate("windows", n=agg.count(), total=agg.sum("id"))
    rows.sink("raw", sinks.parquet(f"{place}/raw"))
    counts.sink("counts", sinks.parquet(f"{place}/counts"))
    closed.sink("finals", sinks.parquet(f"{place}/finals"), mode="final")


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", default=[], help="KEY=VALUE, a Spark setting")
    options = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in options.conf)
    return run_and_tell(build(options.root, options.epochs), options.root, settings, master=options.master)


def run_and_tell(app: App, root: Path, more: Mapping[str, str] | None = None, **options: Any) -> int:
    """Run an app until its input ends, its checkpoint below a directory; an exit code and a message if it fails."""
    settings = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), FAST_START)
    settings |= {"spark.driver.memory": "1g", **(more or {})}
    places = {"checkpoint": str(root / "checkpoint"), "local": str(root / "local")}
    try:
        app.run(until="available", settings=settings, **(places | options))
    except Exception as error:
        return tell(error)
    return 0


def run_until_told(start: Callable[[], Running], stop: Path) -> int:
    """Run an app until a file is there; an exit code and a message if it fails."""
    try:
        running = start()
        while not stop.exists():
            try:
                running.wait(LOOK_S)
            except TimeoutError:
                continue
            raise RuntimeError("the app ended before it was told to")
        running.stop()
    except Exception as error:
        return tell(error)
    return 0


def tell(error: Exception) -> int:
    """Say what the command line would say of an error, after its class; returns the exit code."""
    message, code = plain(error)
    print(f"{type(error).__name__}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

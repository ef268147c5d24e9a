"""An app whose rows come to different ends, and run as a script, a driver process that runs it.

One file of JSON lines an epoch: some lines are no records, some rows come after their window has closed. Files have
no offsets that would tell how many rows there were. The rows go to a window, to a count, and straight to a sink.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chaos_app import run_and_tell

from springtide import App, agg, sinks, sources

ROWS = 30
WINDOW_S = 5
START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Ends:
    """What becomes of the rows of an epoch."""

    rows_in: int
    dead_letters: int
    late_rows: int
    offered: int
    processed: int


def write_inputs(root: Path, epochs: int) -> None:
    """A file an epoch; Spark takes the older one first."""
    directory = root / "input"
    directory.mkdir(parents=True)
    for epoch in range(epochs):
        now = START + timedelta(seconds=10 * epoch)
        times = [now] * ROWS + [START] * (epoch + 1)
        lines = [json.dumps({"key": n % 7, "at": at.isoformat()}) for n, at in enumerate(times)]
        path = directory / f"{epoch:05d}.json"
        path.write_text("\n".join([*lines, *["not a record"] * (2 * epoch + 1)]))
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def expected(epochs: int) -> dict[int, Ends]:
    """By epoch: the oracle. Rows at the start are late once a later epoch has closed their window.

    After the epochs with rows comes one without, for the windows that the last one has made due.
    """
    found = {}
    for epoch in range(epochs):
        good, dead = ROWS + epoch + 1, 2 * epoch + 1
        late = epoch + 1 if 10 * (epoch - 1) >= WINDOW_S else 0
        found[epoch] = Ends(good + dead, dead, late, good + dead, good)
    return found | {epochs: Ends(0, 0, 0, 0, 0)}


def build(root: Path) -> App:
    """The app, with its input under `root`."""
    app = App("account", slices=8)
    files = sources.files(str(root / "input"), format="json", schema="key BIGINT, at TIMESTAMP", maxFilesPerTrigger="1")
    rows = app.source("rows", files)
    windows = rows.key_by("key").window("at", f"{WINDOW_S} seconds", late="0 seconds")
    windows.aggregate("windows", n=agg.count()).sink("finals", sinks.noop(), mode="final")
    rows.key_by("key").aggregate("count", n=agg.count()).sink("counts", sinks.noop()).with_minimum_accuracy(0.5)
    rows.sink("raw", sinks.parquet(str(root / "raw")))
    return app


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    return run_and_tell(build(options.root), options.root, master=options.master)


if __name__ == "__main__":
    sys.exit(main())

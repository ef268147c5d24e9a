"""A driver process whose app cannot carry its load: two steps that take their time over every row.

Every epoch's manifest is copied before it is forgotten, so that a test can go over all accounts. Apps with other
sources share the steps, and how they are run.
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from chaos_app import FAST_START, run_until_told

from springtide import App, Groups, Reduced, rates, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.log import ManifestLog
from springtide.blocks.store import LocalStore
from springtide.dataflow.query import Query
from springtide.dataflow.stream import Stream
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport

QUERIES = {"low": (0.05, 0), "high": (0.1, 5)}
"""By query: its minimum accuracy and its priority, where rows may be shed."""
KEYS = 50
SLOTS = 2
STOP, AT_WORK = "stop", "at-work"
"""Files under the root: the app is to end, and a step has begun with its rows."""
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": FAST_START,
    "spark.executor.extraJavaOptions": FAST_START,
}
OUTPUT = {"key": int, "n": int, "total": int}


class Slow:
    """Counts the rows of each key and adds up their ids, and takes its time over every one. Runs on workers."""

    def __init__(self, row_s: float, root: Path) -> None:
        self.row_s, self.at_work = row_s, root / AT_WORK

    def __call__(self, groups: Groups) -> Reduced:
        self.at_work.touch()
        time.sleep(groups.rows.num_rows * self.row_s)
        ones, ids = np.ones(groups.rows.num_rows, np.int64), groups.rows["id"].to_numpy()
        state = pa.table({"n": _added(groups, "n", ones), "total": _added(groups, "total", ids)})
        return Reduced(state, state.add_column(0, "key", groups.keys["key"]))


def _added(groups: Groups, name: str, values: Any) -> Any:
    """By key: what was known, and the values of its rows on top."""
    sums = np.where(groups.known, groups.state[name].fill_null(0).to_numpy(), 0)
    np.add.at(sums, groups.group_of_row, values)
    return sums


def add_slow(rows: Stream, name: str, row_s: float, root: Path) -> Query:
    """A query that takes its time, with its sink under `root`."""
    state = {"n": int, "total": int}
    step = rows.key_by("key").reduce_batches(f"{name}-step", Slow(row_s, root), state=state, output=OUTPUT)
    return step.sink(name, sinks.parquet(str(root / name)))


def build(root: Path, options: argparse.Namespace) -> App:
    """The app, with its sinks under `root`."""
    app = App("overload", slices=16)
    profile = rates.step([(since_s, rate) for since_s, rate in json.loads(options.rates)])
    rows = app.source("rows", sources.generator(profile, keys=KEYS, max_rows_per_epoch=options.epoch_rows))
    for name, (minimum, priority) in QUERIES.items():
        query = add_slow(rows, name, options.row_s, root)
        if options.sheds:
            query.with_minimum_accuracy(minimum).with_priority(priority)
    return app


def keep_manifest(root: Path, report: EpochReport) -> None:
    """Copy the manifest of an epoch that is just over; it appears whole or not at all, beside others of that epoch."""
    manifest = ManifestLog(current(LocalStore(root / "checkpoint"))).read(Epoch(report.epoch))
    kept = root / "kept"
    kept.mkdir(exist_ok=True)
    temporary = kept / f".{report.epoch}"
    temporary.write_bytes(manifest.encode())
    os.replace(temporary, kept / f"{report.epoch:09d}.{manifest.id}.json")


def run_and_keep(app: App, root: Path, **options: Any) -> int:
    """Run an app until it is told to stop, and keep its manifests; an exit code and a message if it fails."""
    places = {"checkpoint": str(root / "checkpoint"), "local": str(root / "local")}
    start = partial(app.start, settings=SETTINGS, on_epoch=partial(keep_manifest, root), **places, **options)
    return run_until_told(start, root / STOP)


def main() -> int:
    """Run the app until it is told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--rates", required=True, help="JSON: [[from second, rows a second], ...]")
    parser.add_argument("--sheds", action="store_true")
    parser.add_argument("--row-s", type=float, required=True, help="what each step takes for a row")
    parser.add_argument("--epoch-rows", type=int, required=True)
    options = parser.parse_args()
    root: Path = options.root
    return run_and_keep(build(root, options), root, master=f"local[{SLOTS}]", instances=SLOTS)


if __name__ == "__main__":
    sys.exit(main())

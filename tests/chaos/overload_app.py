"""A driver process whose app cannot carry its load: two steps that take their time over every row.

Every epoch's manifest is copied before it is forgotten, so that a test can go over all accounts.
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from chaos_app import FAST_START, run_until_told

from springtide import App, Groups, Reduced, rates, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.log import ManifestLog
from springtide.blocks.store import LocalStore
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport

QUERIES = {"low": (0.05, 0), "high": (0.1, 5)}
"""By query: its minimum accuracy and its priority, where rows may be shed."""
KEYS = 50
SLOTS = 2
STOP = "stop"
SETTINGS = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": FAST_START}


class Slow:
    """Counts the rows of each key, and takes its time over every one. Runs on workers."""

    def __init__(self, row_s: float) -> None:
        self.row_s = row_s

    def __call__(self, groups: Groups) -> Reduced:
        time.sleep(groups.rows.num_rows * self.row_s)
        before = np.where(groups.known, groups.state["n"].fill_null(0).to_numpy(), 0)
        n = pa.array(before + np.bincount(groups.group_of_row, minlength=len(groups)), pa.int64())
        return Reduced(pa.table({"n": n}), pa.table({"key": groups.keys["key"], "n": n}))


def build(root: Path, options: argparse.Namespace) -> App:
    """The app, with its sinks under `root`."""
    app = App("overload", slices=16)
    profile = rates.step([(since_s, rate) for since_s, rate in json.loads(options.rates)])
    rows = app.source("rows", sources.generator(profile, keys=KEYS, max_rows_per_epoch=options.epoch_rows))
    for name, (minimum, priority) in QUERIES.items():
        step = rows.key_by("key").reduce_batches(
            f"{name}-step", Slow(options.row_s), state={"n": int}, output={"key": int, "n": int}
        )
        query = step.sink(name, sinks.parquet(str(root / name)))
        if options.sheds:
            query.with_minimum_accuracy(minimum).with_priority(priority)
    return app


def keep_manifest(root: Path, report: EpochReport) -> None:
    """Copy the manifest of an epoch that is just over; it appears whole or not at all."""
    manifest = ManifestLog(current(LocalStore(root / "checkpoint"))).read(Epoch(report.epoch))
    kept = root / "kept"
    kept.mkdir(exist_ok=True)
    temporary = kept / f".{report.epoch}"
    temporary.write_bytes(manifest.encode())
    os.replace(temporary, kept / f"{report.epoch:09d}.json")


def main() -> int:
    """Run the app until it is told to stop; an exit code and a message if it fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--rates", required=True, help="JSON: [[from second, rows a second], ...]")
    parser.add_argument("--sheds", action="store_true")
    parser.add_argument("--row-s", type=float, required=True, help="what each step takes for a row")
    parser.add_argument("--epoch-rows", type=int, required=True)
    options = parser.parse_args()
    root: Path = options.root
    start = partial(
        build(root, options).start, checkpoint=str(root / "checkpoint"), local=str(root / "local"),
        master=f"local[{SLOTS}]", instances=SLOTS, settings=SETTINGS, on_epoch=partial(keep_manifest, root),
    )  # fmt: skip
    return run_until_told(start, root / STOP)


if __name__ == "__main__":
    sys.exit(main())

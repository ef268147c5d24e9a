"""A driver process that reads a topic and cannot carry its load, so it sheds: two slow steps, and rows as they are."""

import argparse
import sys
from pathlib import Path

from overload_app import SLOTS, add_slow, run_and_keep

from springtide import App, sinks, sources

SOURCE = "rows"
SLOW = {"low": (0.3, 0), "high": (0.6, 5)}
"""By query that takes its time: its minimum accuracy and its priority."""
IDS, IDS_MINIMUM = "ids", 0.3
"""The query that publishes where each of its rows stood in the topic."""
EPOCH_ROWS = 1500


def build(root: Path, options: argparse.Namespace) -> App:
    """The app, with its sinks under `root`."""
    app = App("shedding", slices=16)
    topic = sources.kafka(
        options.servers,
        options.topic,
        schema="key BIGINT, id BIGINT",
        position=True,
        maxOffsetsPerTrigger=str(EPOCH_ROWS),
    )
    rows = app.source(SOURCE, topic)
    for name, (minimum, priority) in SLOW.items():
        add_slow(rows, name, options.row_s, root).with_minimum_accuracy(minimum).with_priority(priority)
    ids = rows.transform(f"{IDS}-step", lambda df: df.selectExpr("_partition AS part", "_offset AS place", "id"))
    ids.sink(IDS, sinks.parquet(str(root / IDS))).with_minimum_accuracy(IDS_MINIMUM)
    return app


def main() -> int:
    """Run the app until it is told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--row-s", type=float, required=True, help="what each step takes for a row")
    parser.add_argument("--durable-every", type=int, default=1)
    parser.add_argument("--workers", type=int, help="executors of their own; else all runs in the driver")
    options = parser.parse_args()
    root: Path = options.root
    where = {"workers": options.workers} if options.workers else {"master": f"local[{SLOTS}]", "instances": SLOTS}
    return run_and_keep(build(root, options), root, durable_every=options.durable_every, **where)


if __name__ == "__main__":
    sys.exit(main())

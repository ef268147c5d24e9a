"""An app from a generator into Kafka, and run as a script, a driver process that runs it and may be killed."""

import argparse
import sys
from pathlib import Path

from chaos_app import FAST_START, spec

from springtide import App, agg, sinks, sources

ROWS, COUNTS = "rows", "counts"
"""The topics: the rows as they are, and the running count of each key."""


def build(servers: str, epochs: int) -> App:
    app = App("delivering", slices=16)
    rows = app.source("in", sources.Generator(spec(epochs)))
    rows.sink("raw", sinks.kafka(servers, ROWS, key="key"))
    counts = rows.key_by("key").aggregate("count", n=agg.count(), total=agg.sum("id"))
    counts.sink("counts", sinks.kafka(servers, COUNTS))
    return app


def main() -> int:
    """Run the app on a Spark of its own until all rows are done; 1 and a message if it fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    settings = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": FAST_START}
    try:
        build(options.servers, options.epochs).run(
            checkpoint=str(options.root / "checkpoint"),
            local=str(options.root / "local"),
            until=f"epochs={options.epochs}" if options.workers else "available",
            workers=options.workers,
            settings=settings | {"spark.executor.extraJavaOptions": FAST_START},
        )
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

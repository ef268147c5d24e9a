"""The app whose sinks are tables in PostgreSQL, and run as a script, a driver process that runs it."""

import argparse
import sys
from pathlib import Path

from chaos_app import run_and_tell, spec

from springtide import App, agg, sinks, sources


def build(epochs: int, dsn: str) -> App:
    """Rows as they come, added; and a running count by key, of which the table has the last."""
    app = App("postgres-chaos", slices=16)
    rows = app.source("rows", sources.Generator(spec(epochs)))
    rows.sink("raw", sinks.postgres(dsn, "raw", create=True, epoch="epoch"))
    counts = rows.key_by("key").aggregate("count", n=agg.count(), total=agg.sum("id"))
    counts.sink("counts", sinks.postgres(dsn, "counts", key="key", create=True, epoch="epoch"))
    return app


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("dsn")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    return run_and_tell(build(options.epochs, options.dsn), options.root, workers=options.workers)


if __name__ == "__main__":
    sys.exit(main())

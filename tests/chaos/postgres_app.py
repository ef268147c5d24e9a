"""The app whose sinks are tables in PostgreSQL, and run as a script, a driver process that runs it."""

import argparse
import sys
from pathlib import Path

from chaos_app import FAST_START, spec

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
    """Run the app on a Spark of its own; 1 and a message if it fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("dsn")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    try:
        build(options.epochs, options.dsn).run(
            checkpoint=str(options.root / "checkpoint"),
            local=str(options.root / "local"),
            until="available",
            workers=options.workers,
            settings={
                "spark.driver.memory": "1g",
                "spark.driver.extraJavaOptions": FAST_START,
                "spark.executor.extraJavaOptions": FAST_START,
            },
        )
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

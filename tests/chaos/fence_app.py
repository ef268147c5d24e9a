"""The app that two drivers run on one checkpoint, with every kind of sink; run as a script, one of the drivers."""

import argparse
import sys
from pathlib import Path

from chaos_app import add_branches, run_and_tell, spec

from springtide import App, sinks, sources


def build(root: Path, epochs: int, dsn: str, servers: str = "", topic: str = "") -> App:
    """As the chaos app, and the counts go to a table, too; with a broker, the rows go to a topic."""
    app = App("fence", slices=16)
    rows = app.source("rows", sources.Generator(spec(epochs)))
    add_branches(rows, str(root))
    rows.sink("table", sinks.postgres(dsn, "raw", create=True, epoch="epoch"))
    if topic:
        rows.sink("topic", sinks.kafka(servers, topic))
    return app


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("dsn")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--servers", default="")
    parser.add_argument("--topic", default="")
    parser.add_argument("--durable-every", type=int, default=1)
    options = parser.parse_args()
    app = build(options.root, options.epochs, options.dsn, options.servers, options.topic)
    local = str(options.root / "local-of-the-first")
    return run_and_tell(app, options.root, local=local, durable_every=options.durable_every)


if __name__ == "__main__":
    sys.exit(main())

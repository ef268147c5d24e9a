"""A driver process that runs the chaos app on several workers until it is told to stop.

The generator's rows never run out, and each epoch takes the same share of them, so whenever the app
stops its sinks must hold exactly what its epochs give.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chaos_app import FAST_START, KEYS, build, run_until_told

from springtide import App

ENDLESS = 100_000
"""Epochs' worth of rows: more than any test gets to."""
STOP = "stop"
"""A file under the root; the app ends after the epoch in flight once it is there."""
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": FAST_START,
    "spark.executor.extraJavaOptions": FAST_START,
}


def main(build: Callable[[Path, int, int], App] = build) -> int:
    """Run the app, or one that is built otherwise, on a cluster, in a box unless a master is named.

    An exit code and a message if it fails.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--master")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--durable-every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=ENDLESS, help="the number of epochs that there are rows for")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--conf", action="append", default=[], help="KEY=VALUE, a Spark setting")
    options = parser.parse_args()
    start = partial(
        build(options.root, options.epochs, options.keys).start,
        checkpoint=str(options.root / "checkpoint"),
        local=str(options.root / "local"),
        master=options.master,
        workers=options.workers,
        replicas=options.replicas,
        durable_every=options.durable_every,
        settings=SETTINGS | dict(pair.split("=", 1) for pair in options.conf),
    )
    return run_until_told(start, options.root / STOP)


if __name__ == "__main__":
    sys.exit(main())

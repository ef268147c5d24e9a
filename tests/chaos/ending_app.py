"""A driver process with the chaos app on two workers, which is told to grow and ends with its input meanwhile."""

import argparse
import sys
from pathlib import Path

from chaos_app import FAST_START, build, tell

from springtide.metrics.report import EpochReport


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    options, _ = parser.parse_known_args()
    settings = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), FAST_START)

    def grow(report: EpochReport) -> None:
        if report.epoch == 1:
            running.scale(3)

    running = build(options.root, options.epochs).start(
        checkpoint=str(options.root / "checkpoint"),
        until="available",
        workers=2,
        settings=settings | {"spark.driver.memory": "1g"},
        on_epoch=grow,
    )
    try:
        running.wait()
    except Exception as error:
        return tell(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())

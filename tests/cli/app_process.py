"""An app in a process of its own, started by the command line as a person would."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from waiting import wait_until

SPRINGTIDE = [sys.executable, "-c", "from springtide.cli.entry import main; main()"]
PATIENCE_S = 180.0
QUICK = ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
"""Tests are short: compiling more than the quick compiler does would not pay."""

APP = """
from springtide import App, agg, sinks, sources

app = App("tide")
rows = app.source("rows", sources.generator({rate}, keys=50, limit={limit}, max_rows_per_epoch=2000))
rows.key_by("key").aggregate("counts", n=agg.count()).sink("out", sinks.parquet("out"))
"""


def published(out: Path) -> dict[int, int]:
    """The last count of each key that a reader of the Parquet sink sees."""
    found: dict[int, int] = {}
    for part in sorted(out.rglob("*.parquet"), key=lambda path: int(path.parent.name.partition("=")[2])):
        rows = pq.ParquetFile(part).read().to_pylist()
        found.update((row["key"], row["n"]) for row in rows)
    return found


class AppProcess:
    """`springtide run app.py` in a session of its own, so that signals to its group hurt nobody else."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self._log = directory / "app.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*SPRINGTIDE, "run", "app.py", *QUICK, *arguments],
                cwd=directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "COLUMNS": "80"},
            )

    def __enter__(self) -> "AppProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE_S)

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def until(self, pattern: str) -> str:
        """What it has printed once that matches; it has to run."""

        def found() -> str | None:
            said = self.said
            if re.search(pattern, said, re.MULTILINE):
                return said
            assert self.process.poll() is None, said
            return None

        return wait_until(pattern, found, PATIENCE_S, lambda: self.said)

    def send(self, number: signal.Signals, *, group: bool) -> None:
        (os.killpg if group else os.kill)(self.process.pid, number)

    def ended(self) -> int:
        """Its exit code."""
        return self.process.wait(PATIENCE_S)

    def jvm(self) -> int:
        """The process id of Spark's driver."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(c) for c in children if b"java" in Path(f"/proc/{c}/cmdline").read_bytes().split(b"\0")[0])

"""Lives of the driver that has too much to do, and what its manifests and reports tell."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import overload_app
import pyarrow.parquet as pq
from processes import process
from waiting import wait_until

import springtide
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore
from springtide.engine.reports import last_reports
from springtide.metrics.account import Account
from springtide.metrics.report import EpochReport

ALL = 100_000
PATIENCE_S = 300.0


@dataclass
class Life:
    """One life of the driver; the next one on the same root goes on where it was."""

    root: Path
    rates: Sequence[tuple[float, float]]
    sheds: bool
    row_s: float
    epoch_rows: int
    _popen: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> "Life":
        (self.root / overload_app.STOP).unlink(missing_ok=True)
        paths = [str(Path(springtide.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        command = [
            sys.executable, str(overload_app.__file__), str(self.root), f"--rates={json.dumps(self.rates)}",
            f"--row-s={self.row_s}", f"--epoch-rows={self.epoch_rows}", *(["--sheds"] if self.sheds else []),
        ]  # fmt: skip
        with open(self.root / "driver.log", "ab") as log:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
            self._popen = subprocess.Popen(command, env=environment, cwd=self.root, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._popen.poll() is None:
            self.kill()

    def until(self, what: str, condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
        """Wait for something; fails if it takes too long, or the driver ends meanwhile."""

        def look() -> bool:
            assert self._popen.poll() is None, self.said()
            return condition()

        wait_until(what, look, within_s, self.said)

    def kill(self) -> None:
        """End the driver at once, and its JVM with it."""
        (driver,) = process(self._popen.pid)
        family = driver.family()
        for one in family:
            one.signal(signal.SIGKILL)
        self._popen.wait()
        wait_until("the driver's processes to be gone", lambda: not any(p.state for p in family), 30.0)

    def stop(self) -> None:
        """Let the driver end in order."""
        (self.root / overload_app.STOP).touch()
        code = self._popen.wait(PATIENCE_S)
        assert code == 0, self.said()

    def said(self) -> str:
        last = reports(self.root)[-6:]
        told = [f"epoch {r.epoch}: {r.rows_in} rows in {r.elapsed_s} s, lag {r.lag_rows}" for r in last]
        return "\n".join([*told, (self.root / "driver.log").read_text(errors="replace")[-4000:]])

    def last(self) -> EpochReport | None:
        found = last_reports(LocalStore(self.root / "checkpoint"), 1)
        return found[-1] if found else None

    def source_s(self) -> float:
        """Seconds of the source's time since its profile began, when the last epoch ended."""
        found = self.last()
        return source_s(self.root, found) if found is not None and first(self.root).exists() else 0.0

    def drained(self, rows: float) -> bool:
        """Whether fewer rows wait."""
        found = self.last()
        return found is not None and found.lag_rows is not None and found.lag_rows < rows

    def accurate(self) -> bool:
        """Whether every query has all rows."""
        found = self.last()
        return found is not None and all(query.accuracy == 1 for query in found.queries)


def reports(root: Path) -> list[EpochReport]:
    return last_reports(LocalStore(root / "checkpoint"), ALL)


def source_s(root: Path, report: EpochReport) -> float:
    """When an epoch ended, in seconds since the source's profile began."""
    began: int = json.loads(Manifest.decode(first(root).read_bytes()).offsets[0])["start_us"]
    return report.ended_at - began / 1e6


def first(root: Path) -> Path:
    """The manifest of the first epoch; a moment later than its report."""
    return root / "kept" / f"{0:09d}.json"


def kept(root: Path) -> dict[int, Manifest]:
    """By epoch: its manifest, of all epochs that there were."""
    found = (Manifest.decode(path.read_bytes()) for path in sorted((root / "kept").glob("[0-9]*.json")))
    return {manifest.epoch: manifest for manifest in found}


def accounts(root: Path) -> dict[int, Account]:
    """By epoch: what became of its rows, as it was committed."""
    return {epoch: m.account for epoch, m in kept(root).items() if m.account is not None}


def counted(root: Path, query: str) -> int:
    """The rows that a query's results tell of: by key, the last count that was published."""
    last: dict[int, int] = {}
    files = (root / query).glob("epoch=*/*.parquet")
    for file in sorted(files, key=lambda file: int(file.parent.name[len("epoch=") :])):
        for row in pq.ParquetFile(file).read().to_pylist():
            last[row["key"]] = row["n"]
    return sum(last.values())

"""Lives of a driver that runs an app until it is told to stop; any of them may be cut short."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType

import overload_app
from processes import Process, process
from waiting import wait_until

import springtide
from springtide.blocks.store import LocalStore
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.report import EpochReport

ALL = 100_000
PATIENCE_S = 300.0


@dataclass
class Life:
    """One life of the driver; the next one on the same root goes on where it was."""

    root: Path
    app: ModuleType
    """A script; it ends its app in order once the file STOP is there."""
    arguments: Sequence[str]
    _popen: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> "Life":
        (self.root / overload_app.STOP).unlink(missing_ok=True)
        script = Path(str(self.app.__file__))
        paths = [str(Path(springtide.__file__).parents[1]), str(script.parent), os.environ.get("PYTHONPATH", "")]
        with open(self.root / "driver.log", "ab") as log:
            self._popen = subprocess.Popen(
                [sys.executable, str(script), str(self.root), *self.arguments],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                cwd=self.root,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._popen.poll() is None:
            self.kill()

    @property
    def driver(self) -> Process:
        (found,) = process(self._popen.pid)
        return found

    def until(self, what: str, condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
        """Wait for something; fails if it takes too long, or the driver ends meanwhile."""

        def look() -> bool:
            assert self._popen.poll() is None, self.said()
            return condition()

        wait_until(what, look, within_s, self.said)

    def kill(self) -> None:
        """End the driver at once, and all its processes with it."""
        family = self.driver.family()
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
        told = [
            f"epoch {r.epoch}: {r.rows_in} rows in {r.elapsed_s} s, lag {r.lag_rows}, {r.retries} retries, "
            f"accuracies {[query.accuracy for query in r.queries]}"
            for r in reports(self.root)[-6:]
        ]
        return "\n".join([*told, (self.root / "driver.log").read_text(errors="replace")[-4000:]])

    def last(self) -> EpochReport | None:
        found = reports(self.root, 1)
        return found[-1] if found else None


def reports(root: Path, count: int = ALL) -> list[EpochReport]:
    """The last reports of all lives, oldest first."""
    return last_reports(LocalStore(root / "checkpoint"), count)

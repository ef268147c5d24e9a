"""An app on several workers in a process of its own, driven and hurt from outside."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, TypeVar

import cluster_app
from chaos_app import KEYS
from chaos_kit import local_blocks
from cluster_check import check, orphans
from processes import Process, process
from waiting import wait_until

import springtide
from springtide import faults
from springtide.blocks.generation import current
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.control.api.address import NotRunning
from springtide.control.api.client import ControlClient, NoAnswer
from springtide.control.api.protocol import DONE, under_way
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.report import EpochReport

START_S = 120.0
"""How long a cluster may take to its first epoch."""
PATIENCE_S = 90.0
"""How long anything else may take."""
STEPS = ("count", "windows")
SLICES = 16
Found = TypeVar("Found")


class Cluster:
    """One life of a driver; a later one on the same root goes on where it was.

    A failpoint whose marker file is there does not fire: all are disarmed at first, and `arm` takes a
    marker away. (The action `kill` does not ask for its marker.)
    """

    def __init__(
        self,
        root: Path,
        *,
        workers: int,
        replicas: int = 1,
        failpoints: Sequence[str] = (),
        keys: int = KEYS,
        settings: Sequence[str] = (),
        durable_every: int = 1,
        master: str | None = None,
        epochs: int | None = None,
        app: ModuleType = cluster_app,
    ) -> None:
        self.root, self.keys, self.input_epochs = root, keys, epochs
        self.checkpoint, self.local, self.markers = root / "checkpoint", local_blocks(root), root / "markers"
        self.log = root / "driver.log"
        self.markers.mkdir(parents=True, exist_ok=True)
        for failpoint in failpoints:
            (self.markers / failpoint.partition("=")[0]).touch()
        (root / cluster_app.STOP).unlink(missing_ok=True)
        self._before = self.epoch
        source = Path(springtide.__file__).parents[1]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]),
            faults.ENVIRONMENT: ",".join(failpoints),
            faults.MARKERS: str(self.markers),
        }
        command = [
            sys.executable,
            str(app.__file__),
            str(root),
            f"--workers={workers}",
            f"--replicas={replicas}",
            f"--keys={keys}",
            f"--durable-every={durable_every}",
            *(f"--conf={setting}" for setting in settings),
            *([f"--master={master}"] if master else []),
            *([f"--epochs={epochs}"] if epochs else []),
        ]
        with open(self.log, "ab") as log:
            self._popen = subprocess.Popen(command, env=environment, cwd=root, stdout=log, stderr=log)
        (self.driver,) = process(self._popen.pid)
        self._family: dict[int, Process] = {}

    def __enter__(self) -> "Cluster":
        try:
            self.client: ControlClient = self.until("a driver that answers", self._find, START_S)
            self.epochs(2)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _find(self) -> ControlClient | None:
        try:
            return ControlClient.find(self.checkpoint)
        except NotRunning:
            return None

    def _end(self) -> None:
        """Leave no process of this driver behind."""
        self._remember()
        everybody = list(self._family.values())
        for one in everybody:
            one.signal(signal.SIGKILL)
        self._popen.wait()
        wait_until("the driver's processes to be gone", lambda: not any(p.state for p in everybody), 30.0)

    def _remember(self) -> None:
        """Executors outlive a driver that is killed: know them before."""
        self._family |= {p.pid: p for p in self.driver.family()}

    # Looking

    def until(self, what: str, condition: Callable[[], Found | None], within_s: float = PATIENCE_S) -> Found:
        """Wait for something; fails if it takes too long, or the driver ends meanwhile."""

        def look() -> Found | None:
            if self._popen.poll() is not None:
                code = self._popen.returncode
                raise AssertionError(f"the driver ended with {code}, waiting for {what}:\n{self.said()}")
            try:
                return condition()
            except (NotRunning, NoAnswer):  # Busy or gone: the next look tells which.
                return None

        return wait_until(what, look, within_s, self.story)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def story(self) -> str:
        """How the app stands, for a test that failed."""
        lines = [
            f"epoch {r.epoch}: plan {r.plan}, {r.retries} retries, {durable_reads([r])} durable reads, "
            f"{r.phases.total_s:.1f} s"
            for r in self.reports()[-8:]
        ]
        try:
            lines += [f"migration {self.client.migration()}", f"workers {self.client.workers()}"]
        except Exception as error:
            lines.append(f"{type(error).__name__}: {error}")
        return "\n".join([*lines, self.said()])

    @property
    def epoch(self) -> int:
        """The last epoch that is reported; -1 if there is none."""
        last = last_reports(LocalStore(self.checkpoint), 1)
        return last[-1].epoch if last else -1

    def reports(self, after: int = -1) -> list[EpochReport]:
        """The reports of the epochs after one."""
        return [r for r in last_reports(LocalStore(self.checkpoint), ENOUGH) if r.epoch > after]

    def workers(self) -> list[str]:
        """The workers of the plan in force, as they came."""
        return [w["id"] for w in self.client.plan()["workers"]]

    def ready(self) -> list[str]:
        return [w["id"] for w in self.client.workers() if w["state"] == "ready"]

    def owners(self) -> dict[str, dict[str, frozenset[int]]]:
        """By step and worker: the slices it owns."""
        steps = self.client.plan()["operators"]
        return {step: {w: SliceSet.parse(s) for w, s in steps[step]["owners"].items()} for step in steps}

    def standby(self, worker: str) -> frozenset[int]:
        """The slices of the first step that a worker stands by for."""
        return SliceSet.parse(self.client.plan()["operators"][STEPS[0]]["replicas"].get(worker, ""))

    def executor(self, worker: str) -> Process:
        return self.driver.executors()[worker]

    def fired(self, point: str) -> bool:
        return (self.markers / point).exists()

    def marked(self, point: str) -> int:
        """The process that a failpoint fired in."""
        return int((self.markers / point).read_text())

    # Waiting

    def epochs(self, count: int, within_s: float = PATIENCE_S) -> None:
        """Wait until this number of epochs has ended."""
        last = max(self.epoch, self._before) + count
        self.until(f"epoch {last}", lambda: self.epoch >= last, within_s)

    def mid_epoch(self) -> int:
        """Wait until an epoch has just begun, and return its number."""
        begins = self.epoch + 2
        logged = Path(current(LocalStore(self.checkpoint)).url, "spark", "offsets", str(begins))
        self.until(f"epoch {begins} to begin", logged.exists)
        return begins

    def backed_up(self) -> None:
        """Wait until every worker stands by with copies of others' state."""
        everybody = self.workers()
        self.until("copies on every worker", lambda: all(any(self.local.glob(f"{w}/*.part.*")) for w in everybody))
        self.epochs(3)

    def settled(self, workers: int, within_s: float = 2 * PATIENCE_S) -> None:
        """Wait until this number of workers is ready and nothing moves."""
        self.until(
            f"{workers} ready workers and no migration",
            lambda: len(self.ready()) == len(self.workers()) == workers and not under_way(self.client.migration()),
            within_s,
        )

    def migrated(self) -> dict[str, Any]:
        """Wait until the migration under way ends."""
        self.until("the migration to end", lambda: not under_way(self.client.migration()), 2 * PATIENCE_S)
        found = self.client.migration()
        assert found is not None
        return found

    # Hurting

    def arm(self, point: str) -> None:
        """From now on the failpoint fires, once."""
        (self.markers / point).unlink()

    def kill(self, *workers: str, with_signal: signal.Signals = signal.SIGKILL) -> None:
        """End workers at once, and wait until the plan does without them."""
        victims = [self.executor(w) for w in workers]
        for victim in victims:
            victim.signal(with_signal)
        self.gone(*workers)
        assert not any(victim.state for victim in victims)

    def gone(self, *workers: str) -> None:
        self.until(f"a plan without workers {workers}", lambda: not set(workers) & set(self.workers()))

    @contextmanager
    def stopped(self, processes: Sequence[Process]) -> Iterator[None]:
        """Processes that stand still for as long as the block lasts."""
        for one in processes:
            one.signal(signal.SIGSTOP)
        try:
            self.until("processes to stop", lambda: all(p.state in ("T", "") for p in processes))
            assert any(p.state for p in processes)
            yield
        finally:
            for one in processes:
                one.signal(signal.SIGCONT)

    def wipe(self, worker: str) -> set[str]:
        """Remove a worker's directory; returns the names of the blocks that were in it."""
        away = self.root / f"wiped-{worker}-{time.monotonic_ns()}"
        (self.local / worker).rename(away)  # In one go: the worker may be writing into it.
        names = {path.name for path in away.glob("*.arrow")}
        shutil.rmtree(away)
        return names

    # Ending

    def stop(self) -> None:
        """Tell the app to stop, and see it end in order."""
        (self.root / cluster_app.STOP).touch()
        self._remember()
        code = self._popen.wait(PATIENCE_S)
        assert code == 0, f"code {code}:\n{self.said()}"

    def finish(self) -> None:
        """Tell the app to stop, and compare what it has published with the oracle."""
        self.stop()
        self.check()

    def ended(self, within_s: float = PATIENCE_S) -> int | None:
        """Wait until the driver ends by itself; returns its code, or None if it goes on."""
        self._remember()
        try:
            return self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def check(self) -> None:
        """The sinks hold exactly what the committed epochs give, and nothing that a manifest names is missing."""
        check(self.root, self.checkpoint, self.keys, self.input_epochs)

    def orphans(self) -> set[str]:
        """Durable blocks of committed epochs that no manifest names, of epochs whose manifests are all there."""
        return orphans(self.checkpoint)


ENOUGH = 10_000


def durable_reads(reports: Sequence[EpochReport]) -> int:
    """How many blocks of state came from the durable store."""
    return sum(operator.durable_reads for report in reports for operator in report.operators)


def one_owner(cluster: Cluster) -> bool:
    """Has every slice of every step exactly one owner?"""
    shares = cluster.owners()
    return all(sorted(s for owned in shares[step].values() for s in owned) == list(range(SLICES)) for step in STEPS)


def retried(reports: Sequence[EpochReport]) -> list[int]:
    """The epochs that were run more than once."""
    return [report.epoch for report in reports if report.retries]


def succeeded(migration: dict[str, Any]) -> bool:
    return bool(migration["state"] == DONE)

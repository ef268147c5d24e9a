"""Driver processes that die as told, and damage to what they leave behind."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import chaos_app
import pytest
from chaos_oracle import batch_counts, expected, published

import springtide
from springtide import faults
from springtide.blocks.block import BlockRef
from springtide.blocks.generation import current
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore, Store
from springtide.engine.lifecycle.local_directory import blocks_directory
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_S = 240.0
ALL = 1000
"""More epochs than any test has."""
WORKER_POINTS = frozenset({"update.begun", "block.put", "block.written", "publish.sent", "publish.part"})
"""Failpoints that a worker fires; all others are the driver's."""
CLUSTER_POINTS = frozenset(
    {"copy.read", "copy.written", "plan.flip", "stop.commit", "stop.swap", "stop.init", "restore.fetched"}
)
"""Failpoints that only an app on several workers comes to."""
INTERVAL_POINTS = frozenset({"deposit.written", "replay.noted"})
"""Failpoints that only an app with an interval between durable checkpoints comes to."""


@dataclass(frozen=True)
class Ended:
    """How a driver process ended, what it printed, and which failpoints left their mark."""

    code: int
    output: str
    fired: frozenset[str]

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def __str__(self) -> str:
        return f"code {self.code}, fired {sorted(self.fired)}, output:\n{self.output}"


def drive(
    root: Path,
    failpoints: str,
    *,
    epochs: int,
    master: str = "local[2]",
    app: ModuleType = chaos_app,
    settings: Sequence[str] = (),
) -> Ended:
    """Run the chaos app, or another, in a process of its own, with failpoints armed, until it ends or dies.

    Also waits for its JVM: that holds the pipe open, and goes when it finds its driver gone.
    """
    markers = root / "markers"
    markers.mkdir(parents=True, exist_ok=True)
    for left in markers.iterdir():
        left.unlink()
    source = Path(springtide.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]),
        faults.ENVIRONMENT: failpoints,
        faults.MARKERS: str(markers),
    }
    command = [
        sys.executable,
        str(app.__file__),
        str(root),
        f"--epochs={epochs}",
        f"--master={master}",
        *(f"--conf={setting}" for setting in settings),
    ]
    done = subprocess.run(
        command,
        env=environment,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    return Ended(done.returncode, done.stdout, frozenset(path.name for path in markers.iterdir()))


@dataclass(frozen=True)
class Site:
    """The chaos app with its checkpoint and sinks in one directory, run on the shared session."""

    spark: "SparkSession"
    root: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def markers(self) -> Path:
        return self.root / "markers"

    def blocks(self, local: str = "local") -> Path:
        """Where the app keeps its blocks in a workers' directory."""
        return local_blocks(self.root, local)

    def run(
        self,
        epochs: int,
        *,
        failpoints: str = "",
        local: str = "local",
        epoch_rows: int = chaos_app.EPOCH_ROWS,
        **options: object,
    ) -> list[EpochReport]:
        """Run the app over the rows of this number of epochs."""
        with self.monkeypatch.context() as armed:
            armed.setenv(faults.ENVIRONMENT, failpoints)
            return chaos_app.build(self.root, epochs, epoch_rows=epoch_rows).run(
                self.spark,
                **{
                    "checkpoint": str(self.checkpoint),
                    "local": str(self.root / local),
                    "instances": 2,
                    "until": "available",
                    **options,
                },
            )

    def run_with_workers(self, epochs: int, failpoints: str) -> list[EpochReport]:
        """Run the app with new workers: the driver's environment is not theirs, so they get one of their own."""
        shutil.rmtree(self.markers, ignore_errors=True)
        self.markers.mkdir()
        with self.monkeypatch.context() as armed:
            armed.setitem(self.spark.sparkContext.environment, faults.ENVIRONMENT, failpoints)
            armed.setitem(self.spark.sparkContext.environment, faults.MARKERS, str(self.markers))
            return self.run(epochs)

    def crash(self, epochs: int, failpoint: str, **options: Any) -> None:
        """Run into a failpoint that raises: what lies on disk is what a driver killed there leaves."""
        with pytest.raises(OSError, match="failpoint"):
            self.run(epochs, failpoints=failpoint, **options)

    def check(self, epochs: int) -> None:
        """The sinks hold exactly what these epochs give."""
        oracle, found = expected(epochs, quiet=quiet(LocalStore(self.checkpoint))), published(self.root)
        assert not found.beyond(oracle)
        assert not oracle.beyond(found)

    def check_counts(self, epochs: int) -> None:
        """The last counts are right, whatever epochs the rows came in."""
        assert published(self.root).last_counts() == batch_counts(epochs)


def local_blocks(root: Path, local: str = "local") -> Path:
    """Where the chaos app on the checkpoint of this root keeps its blocks in a workers' directory."""
    return Path(blocks_directory(str(root / local), "chaos", str(root / "checkpoint")))


def manifests(checkpoint: Path) -> list[Manifest]:
    """All manifests, oldest first; reads only."""
    log = ManifestLog(current(LocalStore(checkpoint)))
    return [log.read(epoch) for epoch in log.epochs()]


def quiet(checkpoint: Store) -> set[int]:
    """The epochs without input, by their last reports."""
    without = {report.epoch: report.without_input for report in last_reports(checkpoint, ALL)}
    return {epoch for epoch in without if without[epoch]}


def head(checkpoint: Path) -> Manifest | None:
    """The last manifest; reads only."""
    found = manifests(checkpoint)
    return found[-1] if found else None


def generation(checkpoint: Path) -> Path:
    """The directory of the last driver."""
    return Path(current(LocalStore(checkpoint)).url)


def manifest_path(checkpoint: Path, epoch: int) -> Path:
    return generation(checkpoint) / "manifests" / f"{epoch:09d}.json"


def state_blocks(manifest: Manifest, operator: str) -> tuple[BlockRef, ...]:
    """The runs that hold an operator's state after an epoch."""
    return manifest.operators[operator].runs


def flip_bit(path: Path) -> None:
    """Damage one byte in the middle of a file; its size stays."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def listing(directory: Path) -> dict[str, bytes]:
    """Every file and its bytes, but for the heartbeat of a living driver and files being written."""
    return {
        str(path.relative_to(directory)): b"" if path.parent.name == "drivers" else path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.endswith(".tmp")
    }

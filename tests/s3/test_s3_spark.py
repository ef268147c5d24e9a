"""Real drivers with checkpoint, Spark's own log and sinks in a real S3 server: killed, or stopped and taken over."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import s3_app
from chaos_kit import DEADLINE_S, quiet
from chaos_oracle import expected, published
from s3_kit import S3, everything
from stopped_driver import Stopped

import springtide
from springtide import faults
from springtide.blocks.claim import Holder
from springtide.blocks.generation import current
from springtide.blocks.log import ManifestLog
from springtide.blocks.store import ObjectStore, open_store
from springtide.engine.lifecycle.file_systems import NoFileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
EPOCHS = 6
LIVES = (("manifest.landed=kill@2", 2), ("generation.copied=kill", 2), ("publish.before=kill@3", 3))
"""Where a driver dies, and the last epoch that is committed by then."""
LEASE_S = 1.5
"""A holder that is silent for a moment may be taken over."""


@dataclass(frozen=True)
class Coast:
    """A place in a bucket, and drivers on it."""

    s3: S3
    root: Path
    place: str

    @property
    def checkpoint(self) -> ObjectStore:
        store = open_store(f"{self.place}/checkpoint")
        assert isinstance(store, ObjectStore)
        return store

    def command(self, epochs: int) -> list[str]:
        return [
            sys.executable,
            s3_app.__file__,
            str(self.root),
            self.place,
            f"--endpoint={self.s3.endpoint}",
            f"--epochs={epochs}",
            f"--lease={LEASE_S}",
        ]

    def environment(self, armed: str) -> dict[str, str]:
        path = [str(Path(springtide.__file__).parents[1]), *sys.path]
        markers = self.root / "markers"
        markers.mkdir(exist_ok=True)
        return {
            **os.environ,
            **self.s3.environment(),
            "PYTHONPATH": os.pathsep.join(path),
            faults.ENVIRONMENT: armed,
            faults.MARKERS: str(markers),
        }

    def run(self, epochs: int, armed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(epochs),
            env=self.environment(armed),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def as_from_another_host(self) -> None:
        """Whoever holds the checkpoint: from here nobody can tell whether it lives."""
        store = self.checkpoint
        for name in store.list("drivers"):
            holder = Holder.decode(store.get(f"drivers/{name}"))
            store.put(f"drivers/{name}", replace(holder, host="elsewhere").encode())

    def check(self) -> None:
        """The sinks hold exactly what all epochs give."""
        store = open_store(self.place)
        assert isinstance(store, ObjectStore)
        for name, data in everything(store).items():
            if name.endswith(".parquet"):
                path = self.root / "read" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        oracle, found = expected(EPOCHS, quiet=quiet(store)), published(self.root / "read")
        assert not found.beyond(oracle)
        assert not oracle.beyond(found)


@pytest.fixture
def coast(s3: S3, tmp_path: Path) -> Coast:
    return Coast(s3, tmp_path, f"s3a://tide/{tmp_path.name}")


def test_drivers_that_are_killed_lose_and_double_nothing(coast: Coast) -> None:
    for armed, committed in LIVES:
        ended = coast.run(EPOCHS, armed)
        assert ended.returncode != 0, f"{armed}: {ended.stdout}"
        head = ManifestLog(current(coast.checkpoint)).head()
        assert head is not None, f"{armed}: {ended.stdout}"
        assert head.epoch == committed, f"{armed}: {ended.stdout}"
    ended = coast.run(EPOCHS)
    assert ended.returncode == 0, ended.stdout
    coast.check()


def test_a_driver_that_stops_is_taken_over_and_goes_on(coast: Coast) -> None:
    armed = coast.environment("records.collected=stop@3")
    first = Stopped(coast.command(EPOCHS), armed, coast.root / "first.log", coast.root / "markers/records.collected")
    with first:
        coast.as_from_another_host()
        ended = coast.run(EPOCHS - 1)
        assert ended.returncode == 0, ended.stdout
        before = _what_counts(coast)
        said = first.goes_on()
    assert "TakenOver" in said, said
    assert _what_counts(coast) == before, "who was taken over changes nothing"
    ended = coast.run(EPOCHS)
    assert ended.returncode == 0, ended.stdout
    coast.check()


def test_a_spark_without_the_jars_is_told_before_anything_is_written(spark: "SparkSession", coast: Coast) -> None:
    with pytest.raises(NoFileSystem, match=f"packages=org.apache.hadoop:hadoop-aws:{s3_app.HADOOP}"):
        s3_app.build(coast.place, EPOCHS).run(spark, checkpoint=f"{coast.place}/checkpoint", until="available")
    assert everything(coast.checkpoint) == {}


def _what_counts(coast: Coast) -> dict[str, bytes]:
    """All that the last driver wrote."""
    store = coast.checkpoint
    own = current(store).url.removeprefix(f"{store.url}/")
    return {name: data for name, data in everything(store).items() if name.startswith(f"{own}/")}

"""Exactly once into PostgreSQL: drivers and workers that die while an epoch is published, a server that goes away."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import postgres_app
import psycopg
import pytest
from chaos_app import START_S
from chaos_kit import DEADLINE_S, WORKER_POINTS, Ended
from chaos_oracle import batch_counts, expected

import springtide
from springtide import faults
from springtide.dataflow.errors import StepFailed
from springtide.testing import Server, postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(600)]
EPOCHS = 3


@dataclass(frozen=True)
class Town:
    """The app on the shared session, with its checkpoint in one directory and its tables in one schema."""

    spark: "SparkSession"
    root: Path
    dsn: str
    monkeypatch: pytest.MonkeyPatch

    def run(self, epochs: int = EPOCHS, *, failpoints: str = "", in_workers: str = "") -> None:
        markers = self.root / "markers"
        markers.mkdir(exist_ok=True)
        with self.monkeypatch.context() as armed:
            armed.setenv(faults.ENVIRONMENT, failpoints)
            if in_workers:  # Workers that know of it are others than those that do not.
                armed.setitem(self.spark.sparkContext.environment, faults.ENVIRONMENT, in_workers)
                armed.setitem(self.spark.sparkContext.environment, faults.MARKERS, str(markers))
            postgres_app.build(epochs, self.dsn).run(
                self.spark,
                checkpoint=str(self.root / "checkpoint"),
                local=str(self.root / "local"),
                instances=2,
                until="available",
            )


@pytest.fixture
def town(spark: "SparkSession", tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Town:
    return Town(spark, tmp_path, dsn, monkeypatch)


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]


def check(dsn: str, epochs: int = EPOCHS) -> None:
    """The tables hold exactly what these epochs give, and nothing else is left."""
    columns = ", ".join(postgres_app.spec(epochs).rows(0, 1, START_S).schema.names)
    assert Counter(ask(dsn, f"SELECT epoch, {columns} FROM raw")) == expected(epochs).raw
    counts = ask(dsn, "SELECT key, n, total FROM counts")
    assert len(counts) == len({key for key, _, _ in counts})
    assert {key: (n, total) for key, n, total in counts} == batch_counts(epochs)
    left = ask(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    assert {name for (name,) in left} == {"raw", "counts", "springtide_epochs"}


def test_a_driver_that_dies_at_any_point_of_publishing(town: Town) -> None:
    """What lies in the database is what a driver killed there leaves."""
    rows = "SELECT epoch, id, xmin FROM raw WHERE epoch < 2 ORDER BY id"
    for point in ("publish.before", "publish.part", "publish.staged", "publish.after"):
        armed = {"in_workers": f"{point}=once@1"} if point in WORKER_POINTS else {"failpoints": f"{point}=oserror@1"}
        with pytest.raises((StepFailed, OSError), match=f"failpoint {point}"):
            town.run(**armed)
        seen = {epoch for epoch, _, _ in ask(town.dsn, rows)}
        assert seen == ({0, 1} if point == "publish.after" else {0}), point
    before = ask(town.dsn, rows)
    town.run()
    assert ask(town.dsn, rows) == before, "the epoch that was published again has touched no row"
    check(town.dsn)


def test_a_server_that_is_away_for_a_while(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres() as server:
        town = Town(spark, tmp_path, server.dsn, monkeypatch)
        town.run(1)
        server.stop()
        with pytest.raises(StepFailed, match=r"step 'raw' failed while publishing epoch 1: cannot connect") as failed:
            town.run(2)
        assert "committed and not lost" in str(failed.value)
        server.start()
        town.run(2)
        check(server.dsn, 2)
        recorded = "".join(str(p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file())
        assert server.password not in str(failed.value) + recorded


def drive(root: Path, dsn: str, failpoints: str, *options: str) -> Ended:
    """Run the app in a process of its own, until it ends or dies."""
    markers = root / "markers"
    markers.mkdir(exist_ok=True)
    source = Path(springtide.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]),
        faults.ENVIRONMENT: failpoints,
        faults.MARKERS: str(markers),
    }
    command = [sys.executable, postgres_app.__file__, str(root), dsn, f"--epochs={EPOCHS}", *options]
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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drivers_killed_one_after_the_other(tmp_path: Path, server: Server, dsn: str) -> None:
    for armed in ("publish.before=kill@1", "publish.staged=kill@1", "manifest.after=kill@2", "publish.after=kill@2"):
        ended = drive(tmp_path, dsn, armed)
        assert ended.killed, str(ended)
        assert server.password not in ended.output
    ended = drive(tmp_path, dsn, "")
    assert ended.code == 0, str(ended)
    check(dsn)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_executor_killed_while_a_part_is_written(tmp_path: Path, server: Server, dsn: str) -> None:
    ended = drive(tmp_path, dsn, "publish.part=executor@1", "--workers=2")
    assert ended.code == 0, str(ended)
    assert "publish.part" in ended.fired
    assert server.password not in ended.output
    check(dsn)

"""Readers of a Parquet sink, all through a run with crashes: every look sees each epoch whole or not at all."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest
from chaos_kit import Site, drive
from chaos_oracle import SINKS, Contents, expected, published

from springtide.dataflow.errors import StepFailed

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 6
PAUSE_S = 0.1
"""Between looks, so that there is something left of the machine for the app."""


@dataclass
class Looks:
    """What one reader saw, look by look: how many, and those that were wrong."""

    looks: int = 0
    newest: int = -1
    torn: list[str] = field(default_factory=list)

    def take(self, root: Path, oracle: Contents) -> None:
        """Look at every sink once, with a glob that finds all files below it."""
        for name in SINKS:
            rows = Counter(row[0] for row in getattr(oracle, name).elements())
            for epoch, count in _counts(root / name).items():
                self.newest = max(self.newest, epoch)
                if count != rows[epoch]:
                    self.torn.append(f"{name}: {count} rows of epoch {epoch}, which has {rows[epoch]}")
        self.looks += 1


def _counts(sink: Path) -> dict[int, int]:
    """By epoch, the rows that DuckDB sees."""
    rows = f"read_parquet('{sink}/**/*.parquet', hive_partitioning=true)"
    try:
        with duckdb.connect(config={"threads": 1}) as database:
            return dict(database.sql(f"SELECT epoch, count(*) FROM {rows} GROUP BY epoch").fetchall())
    except duckdb.IOException as error:
        if "No files found" not in str(error):
            raise
        return {}


@contextmanager
def watched(root: Path, epochs: int) -> Iterator[Looks]:
    """Look over and over until the block ends, and once more then."""
    oracle, looks, over = expected(epochs), Looks(), threading.Event()
    failed: list[BaseException] = []

    def look() -> None:
        try:
            while not over.wait(PAUSE_S):
                looks.take(root, oracle)
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=look, name="reader")
    reader.start()
    try:
        yield looks
    finally:
        over.set()
        reader.join()
    assert not failed, repr(failed[0])
    looks.take(root, oracle)


def check(root: Path, looks: Looks, epochs: int) -> None:
    assert not looks.torn, f"{len(looks.torn)} in {looks.looks} looks, such as {looks.torn[0]}"
    assert looks.looks > 10
    oracle, found = expected(epochs), published(root)
    assert looks.newest == max(oracle.epochs())
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
    for name in SINKS:
        assert not list((root / f".{name}.springtide").iterdir()), "what was cut short is gone"


def test_a_torn_epoch_is_noticed(tmp_path: Path) -> None:
    """The reader is one that can tell."""
    (tmp_path / "raw" / "epoch=0").mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path}/raw/epoch=0/part-00000.parquet'")
    looks = Looks()
    looks.take(tmp_path, expected(1))
    assert looks.torn == ["raw: 1 rows of epoch 0, which has 150"]


def test_a_driver_that_crashes_while_it_publishes(site: Site) -> None:
    """What lies on disk is what a driver killed there leaves."""
    with watched(site.root, 2) as looks:
        with pytest.raises(StepFailed, match=r"failpoint publish.staged"):
            site.run(2, failpoints="publish.staged=oserror@1")
        site.run(2)
    check(site.root, looks, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drivers_killed_at_every_point_of_publishing(tmp_path: Path) -> None:
    """SIGKILL to the driver; amid the parts to its JVM, under which they are written."""
    lives = ("publish.before=kill@0", "publish.part=executor@1", "publish.staged=kill@2", "publish.after=kill@3")
    with watched(tmp_path, EPOCHS) as looks:
        for life in lives:
            ended = drive(tmp_path, life, epochs=EPOCHS)
            assert ended.code != 0, str(ended)
            assert ended.fired == {life.partition("=")[0]}, str(ended)
        ended = drive(tmp_path, "", epochs=EPOCHS)
        assert ended.code == 0, str(ended)
    check(tmp_path, looks, EPOCHS)

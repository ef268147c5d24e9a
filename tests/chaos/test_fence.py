"""Faults 37 and 38: a driver is stopped, taken over as from another host, and continued. Nobody is harmed."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fence_app
import psycopg
import pytest
from chaos_app import START_S, spec
from chaos_kit import generation, listing, manifests, quiet
from chaos_oracle import expected, published
from stopped_driver import Stopped

import springtide
from springtide import faults
from springtide.blocks import claim as claim_module
from springtide.blocks.claim import Holder
from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume, create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(900)]
EPOCHS = 6
POINTS = (
    "epoch.start",
    "records.collected",
    "manifest.put",
    "manifest.landed",
    "manifest.after",
    "publish.before",
    "publish.staged",
    "publish.after",
    "gc.delete",
)
"""Where a driver may be stopped once it has its generation."""
EARLY = ("claim.put", "generation.copied")
"""And before."""


class Coast:
    """A checkpoint, its sinks, and drivers on it."""

    def __init__(self, spark: "SparkSession", root: Path, dsn: str, servers: str = "", topic: str = "") -> None:
        self.spark, self.root, self.dsn, self.servers, self.topic = spark, root, dsn, servers, topic
        self.checkpoint, self.markers = root / "checkpoint", root / "markers"
        self.markers.mkdir()

    def stopped(self, point: str, armed: str, durable_every: int) -> Stopped:
        """A driver in a process of its own, which stops at a point."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(springtide.__file__).parents[1]), *sys.path]),
            faults.ENVIRONMENT: armed,
            faults.MARKERS: str(self.markers),
        }
        command = [
            sys.executable,
            fence_app.__file__,
            str(self.root),
            self.dsn,
            f"--epochs={EPOCHS}",
            f"--servers={self.servers}",
            f"--topic={self.topic}",
            f"--durable-every={durable_every}",
        ]
        return Stopped(command, environment, self.root / "first.log", self.markers / point)

    def run(self, epochs: int, durable_every: int = 1) -> None:
        """A driver of this process, up to an epoch."""
        app = fence_app.build(self.root, epochs, self.dsn, self.servers, self.topic)
        app.run(
            self.spark,
            checkpoint=str(self.checkpoint),
            local=str(self.root / "local"),
            instances=2,
            until="available",
            durable_every=durable_every,
        )

    def as_from_another_host(self) -> None:
        """Whoever holds the checkpoint: from here nobody can tell whether it lives."""
        drivers = LocalStore(self.checkpoint)
        for name in drivers.list("drivers"):
            holder = Holder.decode(drivers.get(f"drivers/{name}"))
            drivers.put(f"drivers/{name}", replace(holder, host="elsewhere").encode())

    def check(self) -> None:
        """Every sink holds exactly what all epochs give."""
        oracle, found = expected(EPOCHS, quiet=quiet(LocalStore(self.checkpoint))), published(self.root)
        assert not found.beyond(oracle)
        assert not oracle.beyond(found)
        rows = spec(EPOCHS).rows(0, EPOCHS * fence_app.spec(1).limit, START_S)  # type: ignore[operator]
        columns = ", ".join(rows.schema.names)
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            table = connection.execute(f"SELECT epoch, {columns} FROM raw").fetchall()  # type: ignore[arg-type]
        assert Counter(table) == oracle.raw
        if self.topic:
            ids = Counter(json.loads(record.value or b"")["id"] for record in consume(self.servers, self.topic))
            assert ids == Counter(rows.column("id").to_pylist())


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that is silent for a moment may be taken over."""
    monkeypatch.setattr(claim_module, "LEASE_S", 1.5)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.mark.usefixtures("_soon")
def test_a_driver_that_was_taken_over_before_it_committed(spark: "SparkSession", tmp_path: Path, dsn: str) -> None:
    _journey(Coast(spark, tmp_path, dsn), "records.collected", durable_every=1)


@pytest.mark.slow
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("durable_every", [1, 4])
@pytest.mark.parametrize("point", [*EARLY, *POINTS])
def test_a_driver_that_was_taken_over_anywhere(
    spark: "SparkSession", tmp_path: Path, dsn: str, broker: Broker, point: str, durable_every: int
) -> None:
    topic = create(broker.servers, f"fence-{point}-{durable_every}", 2)
    _journey(Coast(spark, tmp_path, dsn, broker.servers, topic), point, durable_every)


def _journey(coast: Coast, point: str, durable_every: int) -> None:
    """Some epochs, a driver that stops, another for some more; the first goes on; a last one for the rest."""
    early = point in EARLY
    if early:
        coast.run(2, durable_every)
    with coast.stopped(point, f"{point}=stop" if early else f"{point}=stop@3", durable_every) as first:
        coast.as_from_another_host()
        coast.run(EPOCHS - 1, durable_every)
        before, seen = _what_counts(coast), published(coast.root)
        said = first.goes_on()
    assert ("CheckpointInUse" if point == "claim.put" else "TakenOver") in said, said
    assert f"process {os.getpid()} on " in said, said
    assert "/springtide/" not in said, "a message, and no frames of ours"
    assert _what_counts(coast) == before, "who was taken over changes nothing"
    assert published(coast.root) == seen
    coast.run(EPOCHS, durable_every)
    coast.check()


def _what_counts(coast: Coast) -> dict[str, bytes]:
    """All that the last driver wrote, and the blocks that it needs; others are garbage, whoever removes it."""
    durable = DurableLog(current(LocalStore(coast.checkpoint))).last()
    counting = [*manifests(coast.checkpoint), *([] if durable is None else [durable])]
    needed = set[str]().union(*(manifest.blocks() for manifest in counting))
    blocks = listing(coast.checkpoint / "blocks")
    return listing(generation(coast.checkpoint)) | {name: blocks.get(name, b"") for name in needed}

"""Topics as sinks: every row of every epoch once for a reader of what is committed, whatever fails on the way."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka_app
import pyarrow as pa
import pytest
from kafka_oracle import check
from waiting import wait_until

from springtide import App, faults, sinks, sources
from springtide.dataflow.delivery import Address, NotDelivered, deliver
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.dataflow.kafka_sink import PARTS
from springtide.metrics.report import EpochReport
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume, create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RunApp = Callable[..., list[EpochReport]]
EPOCHS = 3


@pytest.fixture(scope="module")
def site() -> Iterator[Broker]:
    """A broker with the app's topics, of its own: the names of the topics are fixed."""
    with Broker() as broker:
        for name in (kafka_app.ROWS, kafka_app.COUNTS):
            create(broker.servers, name, 2)
        yield broker


def rows(*numbers: int) -> list[pa.RecordBatch]:
    table = pa.table({"part": [0] * len(numbers), "key": [b"k"] * len(numbers), "value": [b"%d" % n for n in numbers]})
    return list(table.to_batches())


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return sorted(record.value for record in consume(broker.servers, topic))


def test_an_epoch_is_delivered_once_and_the_next_one_too(broker: Broker, topic: str) -> None:
    here = Address(broker.servers, topic, f"lineage.{topic}", {})
    deliver(here, 0, 0, rows(1, 2))
    deliver(here, 0, 0, rows(1, 2))
    deliver(here, 1, 0, rows(3))
    deliver(here, 0, 0, rows(1, 2))
    assert values(broker, topic) == [b"1", b"2", b"3"]
    deliver(Address(broker.servers, topic, f"another.{topic}", {}), 0, 0, rows(4))
    assert values(broker, topic) == [b"1", b"2", b"3", b"4"], "the first epoch of another checkpoint"


def test_an_attempt_that_comes_late_is_refused(broker: Broker, topic: str, tmp_path: Path) -> None:
    """A zombie: it has sent its rows and hangs before its commit while another attempt delivers the part."""
    script = (
        "from test_sink import *\n"
        f"deliver(Address({broker.servers!r}, {topic!r}, 'lineage.{topic}', {{}}), 0, 0, rows(1, 2))\n"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path), faults.ENVIRONMENT: "publish.sent=hang", faults.MARKERS: str(tmp_path),
    }  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE) as zombie:
        try:
            wait_until("the zombie to hang", (tmp_path / "publish.sent").exists, 30.0)
            deliver(Address(broker.servers, topic, f"lineage.{topic}", {}), 0, 0, rows(1, 2))
            (tmp_path / "publish.sent.go").touch()
            _, said = zombie.communicate(timeout=60)
        finally:
            zombie.kill()
    assert zombie.returncode != 0
    assert NotDelivered.__name__ in said.decode()
    assert values(broker, topic) == [b"1", b"2"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_driver_and_workers_that_fail_at_every_point_of_publishing(
    spark: "SparkSession", site: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One life after the other on one checkpoint: what lies there is what a process killed at that point leaves."""
    environment = spark.sparkContext.environment
    markers = tmp_path / "markers"

    def live(failpoint: str) -> None:
        shutil.rmtree(markers, ignore_errors=True)
        markers.mkdir()
        with monkeypatch.context() as armed:
            armed.setenv(faults.ENVIRONMENT, failpoint)
            armed.setitem(environment, faults.ENVIRONMENT, failpoint)
            armed.setitem(environment, faults.MARKERS, str(markers))
            kafka_app.build(site.servers, EPOCHS).run(
                spark, checkpoint=str(tmp_path / "kept"), local=str(tmp_path / "local"), until="available", instances=2
            )

    for failpoint in ("publish.sent=once@0", "publish.part=once@1", "publish.after=oserror@2"):
        with pytest.raises((OSError, StepFailed), match="failpoint"):
            live(failpoint)
    live("")
    check(site.servers, EPOCHS)


@pytest.mark.spark
def test_a_part_is_the_same_however_the_epoch_was_computed(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One part is delivered, then the epoch comes again in other partitions and another order."""
    class Output:
        epoch, sink, key, lineage = 3, "out", ("user", "n"), f"lineage-{topic}"

        def __init__(self, partitions: int) -> None:
            self.partitions = partitions

        def dataframe(self) -> Any:
            found = [(f"u{n % 7}", n) for n in range(500)]
            return spark.createDataFrame(found, "user STRING, n INT").repartition(self.partitions)

    sink = sinks.kafka(broker.servers, topic, key="user")
    with monkeypatch.context() as armed:
        armed.setitem(spark.sparkContext.environment, faults.ENVIRONMENT, "publish.part=once")
        armed.setitem(spark.sparkContext.environment, faults.MARKERS, str(tmp_path))
        with pytest.raises(Exception, match="failpoint"):
            sink.publish(Output(1))
    some = consume(broker.servers, topic)
    assert 0 < len(some) <= 500
    sink.publish(Output(5))
    found = [json.loads(record.value or b"") for record in consume(broker.servers, topic)]
    assert sorted((row["n"], row["user"]) for row in found) == [(n, f"u{n % 7}") for n in range(500)]
    assert PARTS > 1


def copying(sink: Any) -> App:
    app = App("copying")
    app.source("in", sources.generator(10, limit=10, start_s=0)).sink("out", sink)
    return app


@pytest.mark.spark
def test_a_topic_or_broker_that_is_not_there_is_named_before_the_first_epoch(run_app: RunApp, broker: Broker) -> None:
    with pytest.raises(StepFailed, match=r"step 'out' failed while opening its sink: .* topic 'nowhere'"):
        run_app(copying(sinks.kafka(broker.servers, "nowhere")))
    with pytest.raises(StepFailed, match=r"step 'out' failed while opening its sink: .* 127.0.0.1:1, got no answer"):
        run_app(copying(sinks.kafka("127.0.0.1:1", "any")))


@pytest.mark.spark
def test_a_key_that_is_no_column_is_refused(run_app: RunApp, broker: Broker, topic: str) -> None:
    with pytest.raises(BadGraph, match=r"step 'out': expected a column of .* in key=, got 'nobody'"):
        run_app(copying(sinks.kafka(broker.servers, topic, key="nobody")))

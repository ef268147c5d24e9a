"""Topics as sinks: every row of every epoch once for a reader of what is committed, whatever fails on the way."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka_app
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_oracle import check
from waiting import wait_until

from springtide import App, faults, sinks, sources
from springtide.blocks.errors import TakenOver
from springtide.connectors.kafka import delivery
from springtide.connectors.kafka.delivery import Address, NotDelivered, deliver
from springtide.connectors.kafka.sink import PARTS
from springtide.dataflow.errors import BadGraph, StepFailed
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
    deliver(here, 0, 1, 0, rows(1, 2))
    deliver(here, 0, 1, 0, rows(1, 2))
    deliver(here, 1, 1, 0, rows(3))
    deliver(here, 0, 2, 0, rows(1, 2))
    assert values(broker, topic) == [b"1", b"2", b"3"]
    deliver(Address(broker.servers, topic, f"another.{topic}", {}), 0, 1, 0, rows(4))
    assert values(broker, topic) == [b"1", b"2", b"3", b"4"], "the first epoch of another checkpoint"


@contextmanager
def hanging(broker: Broker, topic: str, generation: int, markers: Path) -> Iterator[Callable[[], tuple[int, str]]]:
    """A process that delivers epoch 0 and hangs before its commit; called, it goes on, and tells how it ended."""
    script = (
        "from test_sink import *\n"
        f"deliver(Address({broker.servers!r}, {topic!r}, 'lineage.{topic}', {{}}), 0, {generation}, 0, rows(1, 2))\n"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        faults.ENVIRONMENT: "publish.sent=hang",
        faults.MARKERS: str(markers),
    }
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE) as process:

        def go_on() -> tuple[int, str]:
            (markers / "publish.sent.go").touch()
            _, said = process.communicate(timeout=60)
            return process.returncode, said.decode()

        try:
            wait_until("the process to hang", (markers / "publish.sent").exists, 30.0)
            yield go_on
        finally:
            process.kill()


def test_an_attempt_that_comes_late_finds_the_rows_there(broker: Broker, topic: str, tmp_path: Path) -> None:
    """A zombie of the same driver: its commit is refused by the broker, and then there is nothing left to do."""
    with hanging(broker, topic, 1, tmp_path) as go_on:
        deliver(Address(broker.servers, topic, f"lineage.{topic}", {}), 0, 1, 0, rows(1, 2))
        code, said = go_on()
        assert code == 0, said
    assert values(broker, topic) == [b"1", b"2"]


def test_a_late_attempt_of_a_driver_that_was_taken_over_stops(broker: Broker, topic: str, tmp_path: Path) -> None:
    """Its worker has outlived it, has sent its rows, and commits after the successor has begun."""
    here = Address(broker.servers, topic, f"lineage.{topic}", {})
    with hanging(broker, topic, 1, tmp_path) as go_on:
        deliver(here, 0, 2, 0, rows(1, 2))
        code, said = go_on()
    assert code != 0
    assert "TakenOver: this driver (generation 1) was taken over by the driver of generation 2" in said
    deliver(here, 1, 2, 0, rows(3))
    assert values(broker, topic) == [b"1", b"2", b"3"]


def test_a_driver_that_a_late_one_interrupts_tries_again(broker: Broker, topic: str, tmp_path: Path) -> None:
    """The late one takes the transactional id away amid a delivery, sees the generation, and stops."""
    here = Address(broker.servers, topic, f"lineage.{topic}", {})
    with hanging(broker, topic, 2, tmp_path) as go_on:
        with pytest.raises(TakenOver, match=r"generation 1\) was taken over by the driver of generation 2"):
            deliver(here, 0, 1, 0, rows(1, 2))
        assert values(broker, topic) == []
        code, said = go_on()
        assert code == 0, said
    assert values(broker, topic) == [b"1", b"2"]


def test_a_marker_of_an_earlier_release_counts(broker: Broker, topic: str) -> None:
    """It told no generation; the epoch that it tells is there."""
    here = Address(broker.servers, topic, f"lineage.{topic}", {})
    group = Consumer({"bootstrap.servers": broker.servers, "group.id": f"lineage.{topic}.0"})
    group.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    group.close()
    deliver(here, 3, 1, 0, rows(1))
    assert values(broker, topic) == []
    deliver(here, 4, 1, 0, rows(2))
    with pytest.raises(TakenOver):
        deliver(here, 5, 0, 0, rows(3))
    assert values(broker, topic) == [b"2"]


def test_attempts_that_shut_one_another_out_give_up_in_the_end(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Address(broker.servers, topic, f"lineage.{topic}", {})
    tries = []

    def another(producer: object, *_: object) -> None:
        tries.append(1)
        other = Producer({"bootstrap.servers": broker.servers, "transactional.id": f"lineage.{topic}.0"})
        other.init_transactions(30)

    monkeypatch.setattr(delivery, "_send", another)
    monkeypatch.setattr(delivery, "PAUSE_S", 0.001)
    with pytest.raises(NotDelivered, match=r"part 0 of epoch 0 was not delivered .*[Ff]enced|newer"):
        deliver(here, 0, 1, 0, rows(1))
    assert len(tries) == delivery.INTERRUPTIONS + 1


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

        def __init__(self, partitions: int, generation: int = 1) -> None:
            self.partitions, self.generation = partitions, generation

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
    sink.publish(Output(5, generation=2))
    with pytest.raises(TakenOver, match=r"by the driver of generation 2"):
        sink.publish(Output(3))
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

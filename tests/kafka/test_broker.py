"""The broker that tests start: its data outlive a crash, and readers see only what was committed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from waiting import wait_until

from springtide.connectors.kafka.jars import PLACE, JarsMissing, pinned
from springtide.testing.kafka import Broker
from springtide.testing.topics import answers, consume, create, partitions_of, produce, widen


@pytest.mark.slow
def test_what_was_written_outlives_a_crash(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        topic = create(broker.servers, "kept", 1)
        produce(broker.servers, topic, ["a", "b"])
        broker.kill()
        assert not answers(broker.servers, within_s=0.5)
        broker.start()
        produce(broker.servers, topic, ["c"])
        assert [record.value for record in consume(broker.servers, topic)] == [b"a", b"b", b"c"]
    assert not broker.running


@pytest.mark.slow
def test_a_broker_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    start = f"print(Broker({str(tmp_path)!r}).start().servers)"
    script = f"import os\nfrom springtide.testing.kafka import Broker\n{start}\n"
    died = subprocess.run(
        [sys.executable, "-c", f"{script}os.kill(os.getpid(), 9)"],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    servers = died.stdout.strip()
    assert died.returncode == -9
    wait_until("the broker to be gone", lambda: not answers(servers, within_s=0.5), 30.0)


def test_partitions_are_added(broker: Broker, topic: str) -> None:
    widen(broker.servers, topic, 3)
    assert partitions_of(broker.servers, topic) == [0, 1, 2]
    produce(broker.servers, topic, ["x"], partition=2)
    assert [(record.partition, record.value) for record in consume(broker.servers, topic)] == [(2, b"x")]


def test_a_reader_does_not_see_what_was_aborted(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for value, commit in (("no", False), ("yes", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert [record.value for record in consume(broker.servers, topic)] == [b"yes"]


def test_without_jars_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    with pytest.raises(JarsMissing, match="springtide kafka fetch"):
        Broker()


def test_a_damaged_jar_is_no_good(tmp_path: Path) -> None:
    jar = pinned("connector")[0]
    (tmp_path / jar.file).write_bytes(b"not a jar")
    assert not jar.good(tmp_path)

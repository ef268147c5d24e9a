"""Topics as sources: every record once, partitions that come later, records that do not parse, and clear errors."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka_kit import orders, put
from spark_kit import bag

from springtide import App, agg, faults, sinks, sources
from springtide.connectors.kafka.jars import PLACE
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.metrics.report import EpochReport
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume, create, produce, widen

pytestmark = pytest.mark.spark
SCHEMA = "user STRING, n BIGINT"
RunApp = Callable[..., list[EpochReport]]


def copied(source: Any) -> tuple[App, sinks.Memory]:
    """An app that keeps a source's rows as they are."""
    app, sink = App("copied"), sinks.memory()
    app.source("in", source).sink("out", sink)
    return app, sink


def test_every_record_once_over_runs_and_new_partitions(
    run_app: RunApp, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, sink = App("counting"), sinks.memory()
    source = sources.kafka(broker.servers, topic, schema=SCHEMA, maxOffsetsPerTrigger="400")
    counts = app.source("in", source).key_by("user").aggregate("count", n=agg.count(), total=agg.sum("n"))
    counts.sink("out", sink)
    put(broker.servers, topic, orders(0, 1000))
    first = run_app(app, checkpoint=str(tmp_path / "kept"))
    assert sum(report.rows_in for report in first) == 1000
    assert len(first) >= 3, "the limit of an epoch holds"

    widen(broker.servers, topic, 3)
    put(broker.servers, topic, orders(1000, 1300), partition=2)
    second = run_app(app, checkpoint=str(tmp_path / "kept"))
    assert sum(report.rows_in for report in second) == 300
    last = {row["user"]: (row["n"], row["total"]) for row in sink.rows()}
    rows = orders(0, 1300)
    n = Counter(row["user"] for row in rows)
    assert last == {user: (n[user], sum(row["n"] for row in rows if row["user"] == user)) for user in n}


def test_records_that_do_not_parse_are_counted(run_app: RunApp, broker: Broker, topic: str) -> None:
    """Fault: malformed records. Each is one dead letter, and no other row is lost."""
    bad = [
        "{",
        "",
        "12",
        "[]",
        '[{"user": "a", "n": 1}, {"user": "b", "n": 2}]',
        '{"user": "c", "n": "many"}',
        None,
        '{"user": "c", "n": 1} and more',
        '{"user": "c", "n": 1}{"user": "d", "n": 2}',
        '{"user": "c", "n": 1}\n{}',
        '{"user": "c", "n": 1}}',
        '{"user": "c", "n": 1}]',
        "{'user': 'c', 'n': 1}",
        '{user: "c", "n": 1}',
        "null",
        b'{"user": "\xff", "n": 1}',
        b'\xef\xbb\xbf{"user": "c", "n": 1}',
        '{"user": "c", "n": 1}\0',
        '{"n": 1,}',
    ]
    produce(broker.servers, topic, bad)
    put(broker.servers, topic, orders(0, 20))
    app, sink = copied(sources.kafka(broker.servers, topic, schema=SCHEMA))
    reports = run_app(app)
    assert bag(sink.rows()) == bag(orders(0, 20))
    assert sum(report.dead_letters for report in reports) == len(bad)
    assert sum(report.rows_in for report in reports) == 20 + len(bad)


def test_a_lenient_source_takes_what_spark_takes(run_app: RunApp, broker: Broker, topic: str) -> None:
    produce(broker.servers, topic, ["{'user': 'c', 'n': 1} and more", "[]", '[{"user": "a", "n": 1}]', "12"])
    app, sink = copied(sources.kafka(broker.servers, topic, schema=SCHEMA, lenient=True))
    assert sum(report.dead_letters for report in run_app(app)) == 3
    assert sink.rows() == [{"user": "c", "n": 1}]


def test_what_a_sink_writes_is_sound(run_app: RunApp, broker: Broker, topic: str) -> None:
    """Not-a-number and infinity, which JSON has no numbers for, come back from a topic as they went into it."""
    schema, values = "user STRING, x DOUBLE", ["NaN", "Infinity", "-Infinity", "0.5"]
    rows = sources.kafka(broker.servers, topic, format="raw")
    between = create(broker.servers, f"{topic}-between", 1)
    produce(broker.servers, topic, values)
    app = App("written")
    numbers = app.source("in", rows).transform(
        "numbers", lambda df: df.selectExpr("'é' AS user", "CAST(CAST(value AS STRING) AS DOUBLE) AS x")
    )
    numbers.sink("out", sinks.kafka(broker.servers, between))
    run_app(app)
    app, sink = copied(sources.kafka(broker.servers, between, schema=schema))
    assert sum(report.dead_letters for report in run_app(app)) == 0
    assert bag(sink.rows()) == bag({"user": "é", "x": float(value)} for value in values)


def test_records_that_do_not_parse_go_to_a_topic_as_they_came(
    run_app: RunApp, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, though the driver fails after publishing and publishes the epoch again."""
    dead = create(broker.servers, f"{topic}-dead", 1)
    bad = [b"{", b"\xff\xfe", b"12"]
    produce(broker.servers, topic, bad, partition=1)
    put(broker.servers, topic, orders(0, 20))
    app, sink = copied(sources.kafka(broker.servers, topic, schema=SCHEMA, malformed=f"topic:{dead}"))
    with monkeypatch.context() as armed:
        armed.setenv(faults.ENVIRONMENT, "publish.after=oserror")
        with pytest.raises(OSError, match="failpoint"):
            run_app(app, checkpoint=str(tmp_path / "kept"))
    put(broker.servers, topic, orders(20, 30))
    reports = run_app(app, checkpoint=str(tmp_path / "kept"))
    assert bag(sink.rows()) == bag(orders(0, 30))
    letters = sorted((record.key, record.value) for record in consume(broker.servers, dead))
    assert letters == [(f"{topic}/1/{offset}".encode(), value) for offset, value in enumerate(bad)]
    counted = [report.dead_letters for report in reports if report.counts]
    assert sum(counted) == len(bad), "the driver failed before it could tell of them"
    again, _ = copied(sources.kafka(broker.servers, topic, schema=SCHEMA, malformed=f"topic:{dead}"))
    assert sum(report.dead_letters for report in run_app(again)) == len(bad)


def test_a_record_that_does_not_parse_stops_the_app_on_request(run_app: RunApp, broker: Broker, topic: str) -> None:
    produce(broker.servers, topic, ['{"user": 1,'], partition=1)
    app, _ = copied(sources.kafka(broker.servers, topic, schema=SCHEMA, malformed="fail"))
    with pytest.raises(StepFailed, match=rf"step 'in' failed while reading its records: .*{topic}/1/0") as failed:
        run_app(app)
    assert failed.value.step == "in"


def test_raw_records_and_positions(run_app: RunApp, broker: Broker, topic: str) -> None:
    put(broker.servers, topic, orders(0, 3), key=b"k", partition=1)
    app, sink = copied(sources.kafka(broker.servers, topic, format="raw"))
    run_app(app)
    found = {(r["topic"], r["partition"], r["offset"], r["key"], r["value"]) for r in sink.rows()}
    assert found == {(topic, 1, n, b"k", f'{{"user": "u{n}", "n": {n}}}'.encode()) for n in range(3)}
    app, sink = copied(sources.kafka(broker.servers, topic, schema=SCHEMA, position=True))
    run_app(app)
    assert {(r["n"], r["_topic"], r["_partition"], r["_offset"], r["_key"]) for r in sink.rows()} == {
        (n, topic, 1, n, b"k") for n in range(3)
    }


def test_a_topic_that_is_not_there_is_named(run_app: RunApp, broker: Broker) -> None:
    app, _ = copied(sources.kafka(broker.servers, "nowhere", schema=SCHEMA))
    with pytest.raises(StepFailed, match=r"step 'in' .* topic 'nowhere'"):
        run_app(app)


def test_a_broker_that_is_not_there_is_named(run_app: RunApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPRINGTIDE_KAFKA", "127.0.0.1:1")
    app, _ = copied(sources.kafka(None, "any", schema=SCHEMA))
    with pytest.raises(StepFailed, match=r"step 'in' .* a Kafka broker at 127.0.0.1:1, got no answer"):
        run_app(app)


def test_without_servers_the_error_says_where_to_name_them(run_app: RunApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPRINGTIDE_KAFKA", raising=False)
    app, _ = copied(sources.kafka(None, "any", schema=SCHEMA))
    with pytest.raises(StepFailed, match=r"step 'in' .* SPRINGTIDE_KAFKA"):
        run_app(app)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"format": "raw", "maxOffsetsPerTigger": "5"}, "maxOffsetsPerTigger"),
        ({"format": "raw", "maxOffsetsPerTrigger": 5}, "a string"),
        ({"format": "raw", "subscribe": "b"}, "topic="),
        ({"format": "avro", "schema": SCHEMA}, "'avro'"),
        ({}, "a schema"),
        ({"format": "raw", "lenient": True}, "lenient"),
        ({"schema": SCHEMA, "starting": "now"}, "'now'"),
        ({"schema": SCHEMA, "malformed": "topic:"}, "topic:NAME"),
        ({"schema": SCHEMA, "malformed": "topic:t"}, "another topic"),
    ],
)
def test_a_bad_option_is_refused_with_the_step(options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(BadGraph, match=wrong) as refused:
        App("bad").source("in", sources.kafka("h:1", "t", **options))
    assert refused.value.step == "in"


def test_without_the_connector_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from springtide.engine.spark.connector_settings import equipped
    from springtide.engine.spark.session import SessionConfig

    monkeypatch.setenv(PLACE, str(tmp_path))
    app, _ = copied(sources.kafka("h:1", "t", schema=SCHEMA))
    with pytest.raises(StepFailed, match=r"step 'in' .*springtide kafka fetch"):
        equipped(SessionConfig(), app.graph())
    named = SessionConfig(settings={"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"})
    assert equipped(named, app.graph()) == named

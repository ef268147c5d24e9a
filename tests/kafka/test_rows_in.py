"""Rows in are a topic's records, and not its offsets: a transaction takes one more than it has records."""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from kafka_kit import orders

from springtide import App, agg, sinks, sources
from springtide.metrics.report import EpochReport
from springtide.testing.kafka import Broker

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]


def test_the_ends_of_transactions_are_no_rows(run_app: RunApp, broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for first in range(0, 40, 10):
        producer.begin_transaction()
        for row in orders(first, first + 10):
            producer.produce(topic, json.dumps(row), partition=0)
        # The last one never happened.
        (producer.commit_transaction if first < 30 else producer.abort_transaction)(30)
    app = App("transactions")
    rows = app.source("in", sources.kafka(broker.servers, topic, schema="user STRING, n BIGINT"))
    few = rows.transform("few", lambda frame: frame.filter("n % 10 = 0"))
    few.key_by("user").aggregate("count", c=agg.count()).sink("out", sinks.noop())
    assert sum(report.rows_in for report in run_app(app)) == 30

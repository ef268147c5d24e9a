"""A broker that goes away while an app runs: the app waits for it and goes on, and nothing is lost or doubled."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_kit import orders, put
from spark_kit import bag
from waiting import wait_until

from springtide import App, sinks, sources
from springtide.testing.kafka import Broker
from springtide.testing.topics import create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow]
AWAY_S = 60.0
IMPATIENT = {"kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"}
"""Clients that give up and must be asked again several times during the outage, as in a long one."""


def test_an_outage_is_survived_without_a_restart(spark: "SparkSession", tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        topic = create(broker.servers, "rows", 2)
        app, sink = App("outage"), sinks.memory()
        source = sources.kafka(broker.servers, topic, schema="user STRING, n BIGINT", **IMPATIENT)
        app.source("in", source).sink("out", sink)
        put(broker.servers, topic, orders(0, 200))
        running = app.start(spark, checkpoint=str(tmp_path / "checkpoint"), local=str(tmp_path / "local"))
        query = running.query.id, running.query.runId
        try:
            wait_until("the rows before", lambda: len(sink.rows()) == 200, 60.0)
            broker.kill()
            back = time.monotonic() + AWAY_S
            wait_until("the end of the outage", lambda: time.monotonic() > back or not running.active, 2 * AWAY_S)
            assert running.active
            broker.start()
            put(broker.servers, topic, orders(200, 400))
            wait_until("the rows after", lambda: len(sink.rows()) >= 400 or not running.active, 60.0)
            assert (running.query.id, running.query.runId) == query
        finally:
            reports = running.stop()
        assert bag(sink.rows()) == bag(orders(0, 400))
        assert sum(report.rows_in for report in reports) == 400

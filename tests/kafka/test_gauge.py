"""How far an app is with a topic: rows by offsets, lag, latency; a broker that is away leaves no error."""

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from kafka_kit import orders, put
from waiting import wait_until

from springtide.connectors.kafka.end_offsets import Ends, EndsSeen
from springtide.connectors.kafka.gauge import KafkaGauge, position, rows_between
from springtide.connectors.kafka.source import kafka
from springtide.testing.kafka import Broker
from springtide.testing.topics import widen

OLD = '{"other":{"0":7},"t":{"0":100,"1":40}}'
NEW = '{"other":{"0":9},"t":{"0":130,"1":40,"2":5}}'


def test_rows_are_counted_from_offsets_and_a_new_partition_from_its_start() -> None:
    assert rows_between(position(OLD, "t"), position(NEW, "t")) == 35
    assert rows_between({}, position(OLD, "t")) == 140
    assert position(OLD, "missing") == {}


def test_the_time_of_arrival_lies_between_two_answers() -> None:
    seen = EndsSeen()
    for at_s, end in ((10.0, 100), (12.0, 100), (14.0, 200)):
        seen.add(Ends(at_s, {0: end}))
    assert seen.arrived_s(0, 99) is None, "it was there before the first answer"
    assert seen.arrived_s(0, 149) == pytest.approx(13.0)
    assert seen.arrived_s(0, 199) == pytest.approx(14.0)
    assert seen.arrived_s(0, 230) == 14.0, "after the last answer"
    assert seen.arrived_s(1, 0) == 14.0, "a partition that no answer had"


def test_an_old_answer_says_nothing_about_now() -> None:
    seen = EndsSeen()
    assert seen.latest(0.0) is None
    seen.add(Ends(10.0, {0: 1}))
    assert seen.latest(10.5) is None
    assert seen.latest(9.5) == Ends(10.0, {0: 1})


def test_lag_latency_and_rate_of_a_live_topic(broker: Broker, topic: str) -> None:
    gauge = KafkaGauge("in", kafka(broker.servers, topic, format="raw"), lambda: None)
    try:
        empty = wait_until("a first answer", lambda: _known(gauge, f'{{"{topic}":{{"0":0,"1":0}}}}'), 20.0)
        assert (empty.rows_in, empty.lag_rows, empty.latency_s) == (0, 0, 0.0)
        widen(broker.servers, topic, 3)
        numbers = count(0, 100)
        for partition in (0, 2):
            start = next(numbers)
            put(broker.servers, topic, orders(start, start + 100), partition=partition)
        taken = f'{{"{topic}":{{"0":60,"1":0,"2":0}}}}'
        found = wait_until("all partitions", lambda: _when(gauge, taken, lambda lag: lag == 140), 20.0)
        assert found.rows_in == 60
        assert found.latency_s is not None
        assert 0.0 < found.latency_s < 20.0
        assert found.injected_rows_per_s is not None
        assert found.injected_rows_per_s > 0.0
    finally:
        gauge.close()


def test_a_broker_that_is_away_leaves_only_what_it_would_tell_unknown() -> None:
    gauge = KafkaGauge("in", kafka("127.0.0.1:1", "t", format="raw"), lambda: OLD)
    try:
        report = gauge.measure(NEW, None, time.time())
        assert (report.rows_in, report.lag_rows, report.latency_s, report.injected_rows_per_s) == (35, None, None, None)
    finally:
        gauge.close()


def _known(gauge: KafkaGauge, offset: str) -> Any:
    return _when(gauge, offset, lambda lag: lag is not None)


def _when(gauge: KafkaGauge, offset: str, right: Callable[[int | None], bool]) -> Any:
    report = gauge.measure(offset, None, time.time())
    return report if right(report.lag_rows) else None

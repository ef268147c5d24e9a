"""The injector: every row once, what it says it sent when is true, and the estimate of its rate is close."""

import itertools

import pytest
from waiting import wait_until

from springtide.bench.experiments.qod.injection import measure, profile
from springtide.connectors.generator.rates import constant
from springtide.testing.injector import Injector
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume


def test_every_row_arrives_once_and_is_accounted_for(broker: Broker, topic: str) -> None:
    injector = Injector(broker.servers, topic, constant(2000), lambda row: b"%d" % row, partitions=(0, 1), limit=500)
    with injector:
        wait_until("all rows to be sent", lambda: injector.finished, 30.0)
    found = consume(broker.servers, topic)
    assert sorted(int(record.value or b"") for record in found) == list(range(500))
    assert all(int(record.value or b"") % 2 == record.partition for record in found)
    assert injector.sent_by(injector.began_s - 1) == 0.0
    assert injector.sent_by(injector.began_s + 1e6) == 500.0
    at = [injector.sent_by(injector.began_s + 0.01 * tick) for tick in range(100)]
    assert at == sorted(at)


def test_the_profile_has_steps_and_ramps() -> None:
    rate = profile(60.0)
    rates = [rate.due_rows(second + 1) - rate.due_rows(second) for second in range(60)]
    assert len({round(r, -1) for r in rates}) > 10, "ramps"
    assert max(b - a for a, b in itertools.pairwise(rates)) > 1000, "steps"


@pytest.mark.slow
def test_the_estimated_rate_is_close_to_the_true_one() -> None:
    found = measure(quick=True)
    assert found["estimates"] > 20
    assert found["rate_error_mean"] < 0.01, found
    assert found["rate_error_p90"] < 0.03, found

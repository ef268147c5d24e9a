"""How well the injection rate of a topic is known: estimated, against what an injector truly sent to a real broker."""

import threading
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from statistics import fmean, quantiles
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from springtide.bench.experiments.qod.bench import Beside
from springtide.bench.harness.findings import rounded
from springtide.connectors.generator.rates import Rate, step
from springtide.connectors.kafka.end_offsets import EndOffsets, Ends
from springtide.metrics.load.injection import InjectionRate, Sample
from springtide.metrics.load.injection import Rate as EstimatedRate
from springtide.testing.injector import Injector
from springtide.testing.kafka import Broker
from springtide.testing.topics import create

PARTITIONS = 4
WINDOW_S = 5.0
"""Of the estimate: one cycle of a controller."""
TAKEN_AT_ONCE = 4000
VALUE = b'{"user": "someone", "at": "somewhere"}'
REST_S = 0.7
"""The reader works in gulps: the lag rises and falls all the time."""


@dataclass(frozen=True)
class Estimated:
    """One estimate, over the time between two samples, and what waited then."""

    rate: EstimatedRate
    lag_rows: int


def profile(seconds: float) -> Rate:
    """Steps up and down, then a ramp up and a ramp down."""
    part = seconds / 6
    steps = [(0.0, 600.0), (part, 1800.0), (2 * part, 900.0), (3 * part, 2400.0)]
    ramp = 20
    for i in range(ramp):
        steps.append((4 * part + i * part / ramp, 2400.0 - 1800.0 * (i + 1) / ramp))
    for i in range(ramp):
        steps.append((5 * part + i * part / ramp, 600.0 + 1800.0 * (i + 1) / ramp))
    return step(steps)


@dataclass
class _Watch:
    """Samples lag and consumption as a running app does."""

    reader: "_Reader"
    estimator: InjectionRate = field(default_factory=lambda: InjectionRate(WINDOW_S))
    found: list[Estimated] = field(default_factory=list)

    def __call__(self, ends: Ends) -> None:
        taken = dict(self.reader.taken)
        lag = {p: end - taken.get(p, 0) for p, end in ends.offsets.items()}
        self.estimator.add(Sample(ends.at_s, taken, lag))
        rate = self.estimator.estimate()
        if rate is not None and rate.until_s - rate.from_s >= WINDOW_S:
            self.found.append(Estimated(rate, sum(max(0, rows) for rows in lag.values())))


class _Reader:
    """Takes rows from all partitions, many at once, then none for a while."""

    def __init__(self, servers: str, topic: str) -> None:
        self.taken = dict.fromkeys(range(PARTITIONS), 0)
        settings = {"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False}
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self.taken])
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stopped.wait(REST_S):
            for message in self._consumer.consume(TAKEN_AT_ONCE, timeout=0.1):
                if message.error() is None:
                    self.taken[message.partition()] = message.offset() + 1


def measure(quick: bool) -> dict[str, Any]:
    """The mean and the 90th percentile of the relative error, with the series for a plot.

    The true rate is that of the rows that got into the topic in the very time of the estimate, as the broker told
    the injector. `sent_error_mean` is the error against the moments at which the injector handed them over.
    """
    seconds = 24.0 if quick else 90.0
    with Broker() as broker:
        topic = create(broker.servers, "injected", PARTITIONS, message_timestamp_type="LogAppendTime")
        reader = _Reader(broker.servers, topic)
        injector = Injector(broker.servers, topic, profile(seconds), lambda row: VALUE, partitions=range(PARTITIONS))
        watch = _Watch(reader)
        asking = EndOffsets(broker.servers, topic, {}, watch)
        try:
            with injector:
                until_s = time.monotonic() + seconds
                while time.monotonic() < until_s:
                    time.sleep(0.1)
                asking.stop()
        finally:
            reader.stop()
    return _findings([found for found in watch.found if found.rate.from_s >= injector.began_s], injector)


def known_rates(quick: bool) -> Beside:
    """The same as rows of a table and figures."""
    found = measure(quick)
    names = ("rate_error_mean", "rate_error_p90", "rate_error_worst", "sent_error_mean")
    rows = [[name.replace("_", " "), f"{100 * found[name]:.2f} %"] for name in names]
    return Beside({name: rounded(found[name]) for name in names}, rows)


def _findings(found: list[Estimated], injector: Injector) -> dict[str, Any]:
    landed = injector.landed()
    rates = [estimated.rate for estimated in found]
    true = [
        (bisect_right(landed, rate.until_s) - bisect_right(landed, rate.from_s)) / (rate.until_s - rate.from_s)
        for rate in rates
    ]
    sent = [
        (injector.sent_by(rate.until_s) - injector.sent_by(rate.from_s)) / (rate.until_s - rate.from_s)
        for rate in rates
    ]
    errors = _errors(rates, true)
    return {
        "rate_error_mean": fmean(errors),
        "rate_error_p90": quantiles(errors, n=10)[-1],
        "rate_error_worst": max(errors),
        "sent_error_mean": fmean(_errors(rates, sent)),
        "estimates": len(found),
        "rows": injector.sent,
        "window_s": WINDOW_S,
        "series": {
            "at_s": [rate.until_s - injector.began_s for rate in rates],
            "estimated_rows_per_s": [rate.rows_per_s for rate in rates],
            "true_rows_per_s": true,
            "lag_rows": [estimated.lag_rows for estimated in found],
        },
    }


def _errors(rates: list[EstimatedRate], true: list[float]) -> list[float]:
    return [abs(rate.rows_per_s - real) / real for rate, real in zip(rates, true, strict=True)]

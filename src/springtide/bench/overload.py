"""An overload: Taxi Drives on Kafka, with more drives than the machine can work on for a while.

An injector sends drives when they fall due, whoever keeps up. It begins slowly, until the first cold epochs are over;
then the rate rises past the app's capacity, stays there, and falls again.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from springtide.app import App
from springtide.bench.contestants import ALL_REPORTS
from springtide.bench.counting import LastCounts
from springtide.bench.trial import wait_for
from springtide.dataflow import rates, sources
from springtide.engine.kafka.jars import connector_settings
from springtide.engine.running import Running
from springtide.engine.session import SessionConfig, make_session
from springtide.metrics.report import EpochReport
from springtide.testing.injector import Injector
from springtide.testing.topics import create
from springtide.workloads.taxi import SCHEMA, City, Speeds, Zones, record

TOPICS = ("hailed", "booked")
CORES = 2
STEP_S = 0.5
"""How often the rate changes while it rises or falls."""
WARM_ROWS_PER_S = 30.0
WARM_EPOCHS = 8
QUICK_S = 1.5
"""An epoch that takes no longer, with the few rows of the beginning, is no cold one."""
FIRST_BURST = 500
LONG = 3.0
"""An epoch that takes so many times as long as one with few drives tells how many the app keeps up with."""
SAMPLE_S = 0.05
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Overload:
    """One run: what the queries accept, and how the rate goes."""

    name: str
    servers: str
    directory: Path
    minima: Mapping[str, float]
    """By query: its minimum accuracy."""
    phases_s: tuple[float, float, float, float]
    """How long the rate rises, stays, falls, and stays low."""
    settle_s: float = 15.0
    """How long the rate is low before it rises: the first epochs with so many drives are not yet as quick as others."""
    factors: tuple[float, float] = (0.5, 1.6)
    """The low and the high rate, in times of the capacity. Minima of 0.4 and 0.6 allow for twice it."""
    detail: int = 24
    capacity: float | None = None
    """Drives a second; measured if it is not given."""
    warm_s: float = 45.0
    """The first epochs are slow; a machine that is busy with other things may never be quick."""

    def profile(self, capacity: float) -> rates.Rate:
        """The rate of each topic."""
        rise_s, stay_s, fall_s, _ = self.phases_s
        low, high = (factor * capacity / len(TOPICS) for factor in self.factors)
        up = _ramp(self.settle_s, rise_s, low, high)
        down = _ramp(self.settle_s + rise_s + stay_s, fall_s, high, low)
        return rates.step([(0.0, low), *up, *down])


def _ramp(since_s: float, for_s: float, start: float, end: float) -> list[tuple[float, float]]:
    count = max(1, round(for_s / STEP_S))
    return [(since_s + i * for_s / count, start + (end - start) * (i + 1) / count) for i in range(count)]


@dataclass(frozen=True)
class Arrivals:
    """What was sent to one topic: so many drives by these times."""

    at_s: Numbers
    rows: Numbers

    def by(self, at_s: float | Numbers) -> Numbers:
        """Drives sent by a time."""
        return np.asarray(np.interp(at_s, self.at_s, self.rows))

    def sent_at(self, row: Numbers) -> Numbers:
        """When drives were sent, by their number."""
        return np.asarray(np.interp(row, self.rows, self.at_s))


@dataclass(frozen=True)
class Overloaded:
    """What a run showed."""

    name: str
    reports: tuple[EpochReport, ...]
    arrivals: Mapping[str, Arrivals]
    began_s: float
    """When the rate began to rise."""
    ended_s: float
    capacity: float
    sent: int
    counted: Mapping[str, int]
    """By query: the drives that its last results tell of."""

    @cached_property
    def taken(self) -> dict[str, list[int]]:
        """By topic: the drives taken by the end of each epoch."""
        return {topic: np.cumsum([_rows(r, topic) for r in self.reports]).tolist() for topic in self.arrivals}

    def sent_by(self, at_s: float) -> float:
        return float(sum(arrivals.by(at_s) for arrivals in self.arrivals.values()))


def _rows(report: EpochReport, topic: str) -> int:
    return next(source.rows_in or 0 for source in report.sources if source.name == topic)


@cache
def kafka_session() -> SparkSession:
    """The Spark of this process, with Kafka's connector."""
    return make_session("bench", SessionConfig(f"local[{CORES}]", connector_settings({})))


def run_overload(course: Overload) -> Overloaded:
    """Run it in this process."""
    topics = {topic: create(course.servers, f"{topic}-{course.name}") for topic in TOPICS}
    counts = {query: LastCounts("taxi", "drives") for query in ("speeds", "zones")}
    running = _app(course, topics, counts).start(
        kafka_session(), checkpoint=str(course.directory / "checkpoint"), local=str(course.directory / "local"),
        keep_reports=ALL_REPORTS,
    )  # fmt: skip
    sending = _Sending(course.servers, topics)
    try:
        with sending.at(rates.constant(WARM_ROWS_PER_S)):
            until_s = time.time() + course.warm_s
            wait_for(running, lambda: _warm(running.reports, late=time.time() > until_s))
        capacity = course.capacity or _capacity(running, sending)
        began_s = time.time() + course.settle_s
        ended_s = began_s + sum(course.phases_s)
        with sending.at(course.profile(capacity)):
            wait_for(running, lambda: time.time() > ended_s)
        if any(minimum < 1 for minimum in course.minima.values()):
            wait_for(running, lambda: _taken(running.reports) == sending.sent)
    finally:
        reports = running.stop()
    counted = {query: found.total for query, found in counts.items()}
    return Overloaded(
        course.name, tuple(reports), sending.arrivals(), began_s, ended_s, capacity, sending.sent, counted
    )


def _app(course: Overload, topics: Mapping[str, str], counts: Mapping[str, LastCounts]) -> App:
    app, city = App(f"taxi-{course.name}"), City(course.detail)
    hailed, booked = (
        app.source(topic, sources.kafka(course.servers, topics[topic], schema=SCHEMA)) for topic in TOPICS
    )
    by_taxi = hailed.union("drives", booked).key_by("taxi")
    speeds = by_taxi.reduce_batches("speed", Speeds(city), state=Speeds.STATE, output=Speeds.OUTPUT)
    zones = by_taxi.reduce_batches("zone", Zones(city), state=Zones.STATE, output=Zones.OUTPUT)
    for query, stream in (("speeds", speeds), ("zones", zones)):
        stream.sink(query, counts[query]).with_minimum_accuracy(course.minima[query])
    return app


def _warm(reports: Sequence[EpochReport], *, late: bool) -> bool:
    """Whether epochs are quick, and nothing is shed any more because of those that were not."""
    last = reports[-3:]
    whole = all(query.accuracy == 1 for report in last for query in report.queries)
    quick = all(report.phases.total_s < QUICK_S for report in last)
    return len(reports) >= WARM_EPOCHS and (late or (whole and quick))


def _taken(reports: Iterable[EpochReport]) -> int:
    return sum(report.rows_in for report in reports)


def _capacity(running: Running, sending: "_Sending") -> float:
    """Drives a second that the app keeps up with: bursts grow until an epoch is long because of its drives."""
    idle_s = median(report.phases.total_s for report in running.reports[-3:])
    rows = FIRST_BURST
    while True:
        before = len(running.reports)
        with sending.at(rates.constant(20.0 * rows), limit=rows // len(TOPICS)):
            wait_for(running, lambda: sending.finished and _taken(running.reports) == sending.sent)
        fullest = max(running.reports[before:], key=lambda report: report.rows_in)
        if fullest.phases.total_s > LONG * idle_s:
            return fullest.rows_in / fullest.phases.total_s
        rows *= 2


class _Sending:
    """Sends drives to all topics, at one rate after the other, and remembers when."""

    def __init__(self, servers: str, topics: Mapping[str, str]) -> None:
        self.servers, self.topics = servers, topics
        self._done: list[dict[str, Injector]] = []

    @property
    def sent(self) -> int:
        return sum(injector.sent for injectors in self._done for injector in injectors.values())

    @property
    def finished(self) -> bool:
        """Whether the last limit is reached."""
        return all(injector.finished for injector in self._done[-1].values())

    def at(self, rate: rates.Rate, limit: int | None = None) -> ExitStack:
        """While the context is open."""
        stack = ExitStack()
        injectors = {}
        for seed, (source, topic) in enumerate(self.topics.items()):
            first = sum(earlier[source].sent for earlier in self._done)
            value: Callable[[int], bytes] = partial(_numbered, first, seed)
            injectors[source] = stack.enter_context(Injector(self.servers, topic, rate, value, limit=limit))
        self._done.append(injectors)
        return stack

    def arrivals(self) -> dict[str, Arrivals]:
        """By source: what it was sent."""
        found = {}
        for source in self.topics:
            at, rows = [self._done[0][source].began_s], [0.0]
            ends = [*(injectors[source].began_s for injectors in self._done[1:]), time.time()]
            for injectors, end_s in zip(self._done, ends, strict=True):
                injector, before = injectors[source], rows[-1]
                times = np.arange(injector.began_s, end_s, SAMPLE_S)
                at += times.tolist()
                rows += [before + injector.sent_by(float(when)) for when in times]
            found[source] = Arrivals(np.array(at), np.array(rows))
        return found


def _numbered(first: int, seed: int, row: int) -> bytes:
    return record(first + row, seed)

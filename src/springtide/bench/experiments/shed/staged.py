"""Taxi Drives on Kafka, at work in a contestant's process between the calls of a benchmark in another process."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from springtide.app import App
from springtide.bench.experiments.shed.overload import TOPICS, Overload, Overloaded
from springtide.bench.experiments.shed.sending import Sending
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.counting import LastCounts
from springtide.bench.harness.trial import wait_for
from springtide.connectors import sources
from springtide.connectors.generator import rates
from springtide.connectors.kafka.jars import connector_settings
from springtide.control.shed.controller import SHARED
from springtide.control.shed.log import ShedLog, read_shed_log
from springtide.control.shed.tenant import Tenant
from springtide.engine.lifecycle.running import Running
from springtide.engine.spark.session import SessionConfig, make_session
from springtide.metrics.report import EpochReport
from springtide.testing.topics import create
from springtide.workloads.taxi import SCHEMA, City, Speeds, Zones

CORES = 2
WARM_ROWS_PER_S = 30.0
WARM_EPOCHS = 8
QUICK_S = 1.5
"""An epoch that takes no longer, with the few rows of the beginning, is no cold one."""
FEW = 50
"""Drives that hardly make an epoch longer."""
LONG = 3.0
"""A burst is long if its epoch takes three times as long as one with few drives."""
SURPLUS = 1.1
"""Times what a burst promises: more drives than the app works off, so that every epoch finds as many as it may take."""
MORE = 1.3
"""Times as many, if it works them off all the same: a cold app told too little."""
LAST_S = 20.0
"""How long the epoch in flight may take at the end."""
ALL = 1_000_000_000
"""A read limit that holds nothing back."""
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Staging:
    """An app to be staged."""

    name: str
    servers: str
    directory: Path
    minima: Mapping[str, float]
    """By query: its minimum accuracy."""
    warm_s: float = 45.0
    """The first epochs are slow; a machine that is busy with other things may never be quick."""
    bursts: tuple[int, int] = (500, 64_000)
    """Drives at once that tell how many an epoch takes, at first and at most."""
    epochs: int = 4
    """Full ones, one after the other, with which the capacity is measured."""
    epoch_s: float = 3.0
    """How long each would take, if it were a burst; in the peak they take 4 s at most."""
    detail: int = 24
    """Of the city's streets."""


@dataclass(frozen=True)
class Burst:
    """An epoch of many drives."""

    rows: int
    seconds: float

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True)
class Capacity:
    """What an app keeps up with."""

    rows_per_s: float
    burst: Burst
    """The one that told how many drives an epoch takes."""


class Staged:
    """An app that has been started and warmed.

    The controller knows of it only while drives are injected: bursts measure the app as it is set.
    """

    def __init__(self, staging: Staging) -> None:
        topics = {topic: create(staging.servers, f"{topic}-{staging.name}") for topic in TOPICS}
        self._counts = {query: LastCounts("taxi", "drives") for query in staging.minima}
        self._app = _taxi_drives(staging, topics, self._counts)
        self._running = self._app.start(
            _kafka_session(),
            checkpoint=str(staging.directory / "checkpoint"),
            local=str(staging.directory / "local"),
            keep_reports=ALL_REPORTS,
        )
        SHARED.leave(self._app.name)
        self._name, self._sending = staging.name, Sending(staging.servers, topics)
        self._course: Overload | None = None
        self._settled_s = 0.0
        self._burst_rows, self._largest = staging.bursts
        self._staging = staging
        self._warm_up(staging.warm_s)

    def _warm_up(self, warm_s: float) -> None:
        """Let few drives come until epochs are quick."""
        until_s = time.time() + warm_s
        with self._sending.at(rates.constant(WARM_ROWS_PER_S)):
            wait_for(self._running, lambda: _warm(self._running.reports, late=time.time() > until_s))

    def burst(self, rows: int) -> Burst:
        """One epoch of `rows` drives. It begins when all have been sent, as sending takes a core of its own."""
        self._admit(1)
        with self._sending.at(rates.constant(20.0 * rows), limit=rows // len(TOPICS)):
            wait_for(self._running, lambda: self._sending.finished)
        before = len(self._running.reports)
        self._admit(ALL)
        wait_for(self._running, self._idle)
        fullest = max(self._running.reports[before:], key=lambda report: report.rows_in)
        return Burst(fullest.rows_in, fullest.phases.total_s)

    def capacity(self) -> Capacity:
        """The drives a second that the app keeps up with for good, measured while drives come.

        A burst has the cores for itself: nobody sends, the broker rests, and no epoch follows it. So it only tells how
        many drives to let an epoch take. Then more come than are worked off, and full epochs follow each other.
        """
        burst = self._long_burst()
        rows, comes = round(burst.rows_per_s * self._staging.epoch_s), SURPLUS * burst.rows_per_s
        while (found := self._sustained(rows // len(TOPICS), comes / len(TOPICS))) is None:
            comes *= MORE
        return Capacity(found, burst)

    def _sustained(self, each: int, comes: float) -> float | None:
        """The drives a second of full epochs with `each` drives of each topic, while `comes` of each come a second.

        None if the app works off more than come, so that its epochs are not full.
        """
        before = len(self._running.reports)

        def seen() -> list[EpochReport]:
            return since_full(self._running.reports[before:], each * len(TOPICS))

        self._admit(each)
        # The drives of the first two epochs come within a tenth of a second or so.
        with self._sending.at(rates.step([(0.0, 20.0 * each), (0.1, comes)])):
            wait_for(self._running, lambda: len(seen()) > self._staging.epochs)
        found = throughput(seen(), each * len(TOPICS))
        self._admit(ALL)
        wait_for(self._running, self._idle)
        return found

    def _long_burst(self) -> Burst:
        """Bursts grow until an epoch is long because of its drives, if they may grow.

        Each is sent twice, as an epoch may also be long because of something else.
        """
        if self._burst_rows >= self._largest:
            return self.burst(self._burst_rows)
        idle_s = self.burst(FEW).seconds
        while True:
            found = min((self.burst(self._burst_rows) for _ in range(2)), key=lambda burst: burst.seconds)
            if found.seconds > LONG * idle_s or self._burst_rows >= self._largest:
                return found
            self._burst_rows *= 2

    def shed(self, accuracies: Mapping[str, float]) -> None:
        """Process these shares from the next epoch on."""
        self._running.shed(accuracies)

    def inject(self, course: Overload, capacity: float, *, drain: bool) -> None:
        """Let drives come, with the controller at work; and if asked wait until all of them are taken."""
        SHARED.join(Tenant(self._app.name, self._running.graph, self._running), ShedLog(self._running.store))
        with self._sending.at(course.profile(capacity)):
            self._course, self._settled_s = course, time.time() + course.settle_s
            ended_s = self._settled_s + sum(course.phases_s)
            wait_for(self._running, lambda: time.time() > ended_s)
        if drain:
            wait_for(self._running, self._idle)
            SHARED.leave(self._app.name)
            self.shed({})

    def end(self) -> None:
        """Stop. An epoch that takes minutes is left to end with the process."""
        stopped, failures = threading.Event(), list[Exception]()
        threading.Thread(target=_stop, args=(self._running, stopped, failures), daemon=True).start()
        stopped.wait(LAST_S)
        if failures:
            raise failures[0]

    def track(self) -> Overloaded:
        """What the last injection showed, with all drives that were taken so far."""
        reports = self._running.reports
        assert self._course is not None, "it was injected"
        began_s, (rise_s, stay_s, *_) = self._settled_s, self._course.phases_s
        return Overloaded(
            self._name,
            tuple(reports),
            self._sending.arrivals(),
            began_s,
            (began_s + rise_s, began_s + rise_s + stay_s),
            began_s + sum(self._course.phases_s),
            self._sending.sent,
            {query: found.total for query, found in self._counts.items()},
            tuple(read_shed_log(self._running.store)),
        )

    def leave(self) -> None:
        """Stop, with nothing to tell."""
        self._running.stop()

    def _admit(self, rows: int) -> None:
        self._running.admit(dict.fromkeys(TOPICS, rows))

    def _idle(self) -> bool:
        return _taken(self._running.reports) == self._sending.sent


_STAGED: dict[str, Staged] = {}
"""The apps at work in this process, by name."""


def stage(staging: Staging) -> None:
    """Start an app in this process, and keep it."""
    _STAGED[staging.name] = Staged(staging)


def on_stage(
    name: str, what: Callable[Concatenate[Staged, Asked], Answer], *some: Asked.args, **more: Asked.kwargs
) -> Answer:
    """Ask an app that was staged in this process."""
    return what(_STAGED[name], *some, **more)


@cache
def _kafka_session() -> SparkSession:
    """The Spark of this process, with Kafka's connector."""
    return make_session("bench", SessionConfig(f"local[{CORES}]", connector_settings({})))


def _taxi_drives(staging: Staging, topics: Mapping[str, str], counts: Mapping[str, LastCounts]) -> App:
    app, city = App(f"taxi-{staging.name}"), City(staging.detail)
    hailed, booked = (
        app.source(topic, sources.kafka(staging.servers, topics[topic], schema=SCHEMA)) for topic in TOPICS
    )
    by_taxi = hailed.union("drives", booked).key_by("taxi")
    speeds = by_taxi.reduce_batches("speed", Speeds(city), state=Speeds.STATE, output=Speeds.OUTPUT)
    zones = by_taxi.reduce_batches("zone", Zones(city), state=Zones.STATE, output=Zones.OUTPUT)
    for query, stream in (("speeds", speeds), ("zones", zones)):
        stream.sink(query, counts[query]).with_minimum_accuracy(staging.minima[query])
    return app


def _stop(running: Running, stopped: threading.Event, failures: list[Exception]) -> None:
    try:
        running.stop()
    except Exception as error:
        failures.append(error)
    stopped.set()


def _warm(reports: list[EpochReport], *, late: bool) -> bool:
    """Whether epochs are quick."""
    return len(reports) >= WARM_EPOCHS and (late or all(r.phases.total_s < QUICK_S for r in reports[-3:]))


def since_full(reports: Sequence[EpochReport], rows: int) -> list[EpochReport]:
    """From the first epoch with all the `rows` that it might take: that one sets the clock."""
    return list(dropwhile(lambda report: report.rows_in < rows, reports))


def throughput(reports: Sequence[EpochReport], rows: int) -> float | None:
    """Rows a second of epochs that follow each other, what lies between them included.

    None if one of them found less than the `rows` that it might take: the app worked off more than came.
    """
    first, *others = reports
    if any(report.rows_in < rows for report in others):
        return None
    return sum(report.rows_in for report in others) / (others[-1].ended_at - first.ended_at)


def _taken(reports: Iterable[EpochReport]) -> int:
    return sum(report.rows_in for report in reports)

"""The catalogue: every series that is exported, with its unit, its meaning and where it is counted.

Counters and histograms add up epochs; gauges tell how it is now. Rates are left to who reads them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from springtide.metrics.epoch_figures import (
    BYTES,
    EPOCHS,
    FIGURE,
    MANIFEST,
    READING,
    ROWS,
    SECONDS,
    SHARE,
    SOURCE,
    TASKS,
)
from springtide.metrics.epoch_figures import SHEDDING as TALLY
from springtide.metrics.report import EpochReport, OperatorReport
from springtide.metrics.snapshot import Snapshot

Labels = tuple[str, ...]
Sample = tuple[Labels, float]
"""The values of the labels, and the value."""

BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper ends of a histogram's buckets; one more takes the rest."""
PHASES = ("plan", "compute", "commit", "publish", "collect")
DRIVER = "the driver"
WINDOW = "the driver, over the last 15 s"


@dataclass(frozen=True)
class Now:
    """What gauges tell of."""

    workers: int
    """Of the plan in force."""
    last: EpochReport | None = None
    snapshot: Snapshot | None = None
    """Of the last moments; None if there were too few epochs."""


@dataclass(frozen=True)
class Series:
    """One name at `/metrics`, which puts `springtide_` before it and the label `app` before the others."""

    kind: ClassVar[str]

    name: str
    unit: str
    meaning: str
    counted: str
    """Where, and by whom."""
    labels: Labels


@dataclass(frozen=True)
class Counter(Series):
    """Grows with epochs, from 0 when the app starts."""

    kind = "counter"

    of: Callable[[EpochReport], Iterable[Sample]]
    """What an epoch adds."""
    repeats: bool = False
    """Epochs that were told of before add to it, too; to all others they do not."""


@dataclass(frozen=True)
class Histogram(Series):
    """How a time is spread over epochs, each counted once."""

    kind = "histogram"

    of: Callable[[EpochReport], Iterable[Sample]]
    """What is observed in an epoch."""


@dataclass(frozen=True)
class Gauge(Series):
    """How it is now; a series without a value is not known."""

    kind = "gauge"

    of: Callable[[Now], Iterable[Sample]]


def _figure(name: str) -> Callable[[EpochReport], Iterable[Sample]]:
    """A figure of the epoch, if it is known."""

    def of(report: EpochReport) -> Iterable[Sample]:
        value = FIGURE[name].of(report)
        return [] if value is None else [((), value)]

    return of


def _total(name: str, figure: str, *, repeats: bool = False) -> Counter:
    """A figure, added up over epochs."""
    of = FIGURE[figure]
    return Counter(name, of.unit, of.meaning, of.counted, (), _figure(figure), repeats)


def _times(name: str, figure: str) -> Histogram:
    """How a figure is spread over epochs."""
    of = FIGURE[figure]
    return Histogram(name, of.unit, of.meaning, of.counted, (), _figure(figure))


def _each_step(value: Callable[[OperatorReport], float]) -> Callable[[EpochReport], Iterable[Sample]]:
    return lambda report: [((step.step,), value(step)) for step in report.operators]


def _of_last(value: Callable[[EpochReport], Iterable[Sample]]) -> Callable[[Now], Iterable[Sample]]:
    return lambda now: [] if now.last is None else value(now.last)


def _of_snapshot(value: Callable[[Snapshot], Iterable[Sample]]) -> Callable[[Now], Iterable[Sample]]:
    return lambda now: [] if now.snapshot is None else value(now.snapshot)


def _sent(report: EpochReport) -> Iterable[Sample]:
    """Bytes between keyed steps, split into those that stayed on their worker and those that crossed."""
    for step in report.operators:
        owner = {number: i.worker for i in step.instances for number, _ in i.slice_rows}
        for sent in step.traffic:
            stays = owner.get(sent.slice, sent.worker) == sent.worker
            yield ("same_worker" if stays else "cross_worker",), sent.bytes


CATALOGUE: tuple[Series, ...] = (
    _total("rows_total", "rows_in"),
    Counter(
        "source_rows_total",
        ROWS,
        "Rows that one source gave, malformed ones too.",
        READING,
        ("source",),
        lambda r: [((source.name,), source.rows_in or 0) for source in r.sources],
    ),
    _total("output_rows_total", "rows_out"),
    _total("late_rows_total", "late_rows"),
    _total("ahead_rows_total", "ahead_rows"),
    _total("dead_letters_total", "dead_letters"),
    Counter(
        "shed_rows_total",
        ROWS,
        "Rows that a query was spared.",
        TALLY,
        ("query",),
        lambda r: [((query.query,), query.shed) for query in r.queries],
    ),
    Counter(
        "epochs_total",
        EPOCHS,
        "Epochs that became true, each once.",
        DRIVER,
        (),
        lambda _: [((), 1)],
    ),
    Counter(
        "epochs_again_total",
        EPOCHS,
        "Epochs that were true before: published again after a restart, or repeated "
        "from a durable checkpoint. No other counter but the retries counts them a second time.",
        DRIVER,
        (),
        lambda r: [((), int(r.replayed))],
        repeats=True,
    ),
    _total("epoch_retries_total", "retries", repeats=True),
    _times("epoch_seconds", "epoch_s"),
    Histogram(
        "epoch_phase_seconds",
        SECONDS,
        "Where an epoch's time goes: plan, compute, commit, publish, collect.",
        "the driver's clock",
        ("phase",),
        lambda r: [((phase,), FIGURE[f"{phase}_s"].of(r) or 0.0) for phase in PHASES],
    ),
    _times("latency_seconds", "latency_s"),
    Counter(
        "step_rows_total",
        ROWS,
        "Rows that a step took, after what stateless steps before it dropped.",
        TASKS,
        ("step",),
        _each_step(lambda step: step.rows_in),
    ),
    Counter(
        "step_output_rows_total",
        ROWS,
        "Rows that a step gave to the next ones and to sinks.",
        TASKS,
        ("step",),
        _each_step(lambda step: step.rows_out),
    ),
    Counter(
        "step_busy_seconds_total",
        SECONDS,
        "Time that a step's tasks spent on rows: reading and stateless steps "
        "before it, deserialising, processing, serialising.",
        TASKS,
        ("step",),
        _each_step(lambda step: step.map_busy_s + sum(i.useful_s for i in step.instances)),
    ),
    Counter(
        "step_cpu_seconds_total",
        SECONDS,
        "Processor time of a step's instances.",
        TASKS,
        ("step",),
        _each_step(lambda step: sum(i.cpu_s for i in step.instances)),
    ),
    Counter(
        "sent_bytes_total",
        BYTES,
        "Rows between keyed steps, on the same worker or across workers.",
        TASKS,
        ("way",),
        _sent,
    ),
    Gauge(
        "last_epoch",
        EPOCHS,
        "The number of the last epoch.",
        DRIVER,
        (),
        _of_last(lambda r: [((), r.epoch)]),
    ),
    Gauge(
        "last_epoch_timestamp_seconds",
        SECONDS,
        "When the last epoch ended, since the Unix epoch.",
        "the driver's clock",
        (),
        _of_last(lambda r: [((), r.ended_at)]),
    ),
    Gauge(
        "lag_rows",
        ROWS,
        "Rows due and not yet taken from a source.",
        SOURCE,
        ("source",),
        _of_last(lambda r: [((s.name,), s.lag_rows) for s in r.sources if s.lag_rows is not None]),
    ),
    Gauge(
        "accuracy_ratio",
        SHARE,
        "The share of rows that a query got in the last epoch.",
        TALLY,
        ("query",),
        _of_last(lambda r: [((query.query,), query.accuracy) for query in r.queries]),
    ),
    Gauge(
        "state_rows",
        ROWS,
        "Keys that a step remembers.",
        MANIFEST,
        ("step",),
        _of_last(_each_step(lambda step: step.state_rows)),
    ),
    Gauge(
        "state_bytes",
        BYTES,
        "What a step's state takes in the store.",
        MANIFEST,
        ("step",),
        _of_last(_each_step(lambda step: step.state_bytes)),
    ),
    Gauge("workers", "workers", "Workers of the plan in force.", DRIVER, (), lambda now: [((), now.workers)]),
    Gauge(
        "worker_cpu_ratio",
        SHARE,
        "The share of a worker's processors in use, by whatever process.",
        WINDOW,
        ("worker",),
        _of_snapshot(lambda s: [((w.id,), w.cpu) for w in s.workers]),
    ),
    Gauge(
        "worker_queue_rows",
        ROWS,
        "Rows that are due and wait for a worker.",
        WINDOW,
        ("worker",),
        _of_snapshot(lambda s: [((w.id,), w.queue_rows) for w in s.workers]),
    ),
    Gauge(
        "migration_longest_pause_seconds",
        SECONDS,
        "The longest pause that a migration has taken.",
        DRIVER,
        (),
        _of_snapshot(lambda s: [((), s.pause_s)]),
    ),
)
"""All of them."""

"""The catalogue: every metric that is exported, with its unit, its meaning and who measures it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from springtide.metrics.snapshot import Instance, Snapshot

Sample = tuple[tuple[str, ...], float]
"""The values of the labels, and the value."""

WORKER_TASK = "the task on the worker"
DRIVER = "the driver, after each epoch"
MACHINE = "the task on the worker, from the machine's own counters"
SOURCE = "the source, where it can tell"


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    unit: str
    meaning: str
    measured_by: str
    labels: tuple[str, ...]
    read: Callable[[Snapshot], Iterable[Sample]]


def _each_instance(value: Callable[[Instance, Snapshot], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda s: (((i.operator, str(i.number), i.worker), value(i, s)) for i in s.instances)


def _moved(snapshot: Snapshot) -> Iterable[Sample]:
    """Bytes between keyed steps, split into those that stay on a worker and those that cross."""
    owner = {(s.operator, s.number): s.owner for s in snapshot.slices}
    found: dict[tuple[str, ...], float] = {}
    for (step, sender, to), rate in snapshot.traffic.items():
        receiver = owner.get((step, to), sender)
        way = "same_worker" if sender == receiver else "cross_worker"
        key = (step, sender, receiver, way)
        found[key] = found.get(key, 0.0) + rate
    return found.items()


OF_INSTANCE = ("operator", "instance", "worker")

CATALOGUE: tuple[Metric, ...] = (
    Metric(
        "source_arrival_rate", "rows/s", "Rows that fell due.", SOURCE, ("source",),
        lambda s: (((x.name,), x.rate) for x in s.sources),
    ),
    Metric(
        "source_lag_rows", "rows", "Rows due and not taken yet.", SOURCE, ("source",),
        lambda s: (((x.name,), x.lag_rows) for x in s.sources),
    ),
    Metric(
        "source_lag_seconds", "s", "How long the newest published rows had been due.", SOURCE, ("source",),
        lambda s: (((x.name,), x.lag_s) for x in s.sources),
    ),
    Metric("epoch_seconds", "s", "How long an epoch takes.", DRIVER, (), lambda s: [((), s.epoch_s)]),
    Metric(
        "epoch_rate", "epochs/s", "Epochs published.", DRIVER, (), lambda s: [((), s.epochs / s.window_s)],
    ),
    Metric(
        "migration_pause_seconds", "s", "The longest pause that a migration has taken.", DRIVER, (),
        lambda s: [((), s.pause_s)],
    ),
    Metric(
        "useful_share", "0 to 1", "Time spent on rows: deserialising, processing, serialising.", WORKER_TASK,
        OF_INSTANCE, _each_instance(lambda i, s: i.useful_s / s.window_s),
    ),
    Metric(
        "records_in_rate", "rows/s", "Rows processed.", WORKER_TASK, OF_INSTANCE,
        _each_instance(lambda i, s: i.records_in / s.window_s),
    ),
    Metric(
        "records_out_rate", "rows/s", "Rows pushed to the next operators and sinks.", WORKER_TASK, OF_INSTANCE,
        _each_instance(lambda i, s: i.records_out / s.window_s),
    ),
    Metric(
        "true_rate", "rows/s", "Rows that it would process if it never waited.", WORKER_TASK, OF_INSTANCE,
        _each_instance(lambda i, _: i.true_rate),
    ),
    Metric(
        "true_output_rate", "rows/s", "Rows that it would push if it never waited.", WORKER_TASK, OF_INSTANCE,
        _each_instance(lambda i, _: i.true_output_rate),
    ),
    Metric(
        "queue_rows", "rows", "Rows that are due and wait for it.", DRIVER, OF_INSTANCE,
        _each_instance(lambda i, _: i.queue_rows),
    ),
    Metric(
        "cpu_share", "processors", "Processor time used.", WORKER_TASK, OF_INSTANCE,
        _each_instance(lambda i, s: i.cpu_s / s.window_s),
    ),
    Metric(
        "state_bytes", "bytes", "Keyed state.", DRIVER, OF_INSTANCE, _each_instance(lambda i, _: i.state_bytes),
    ),
    Metric(
        "traffic_rate", "bytes/s", "Rows between keyed steps.", WORKER_TASK,
        ("operator", "sender", "receiver", "way"), _moved,
    ),
    Metric(
        "slice_rate", "rows/s", "Rows that reached a slice.", WORKER_TASK, ("operator", "slice", "worker"),
        lambda s: (((x.operator, str(x.number), x.owner), x.rate) for x in s.slices),
    ),
    Metric(
        "worker_cpu", "0 to 1", "Processors in use, by whatever process.", MACHINE, ("worker",),
        lambda s: (((w.id,), w.cpu) for w in s.workers),
    ),
    Metric(
        "worker_queue_rows", "rows", "Rows that wait for a worker's instances.", DRIVER, ("worker",),
        lambda s: (((w.id,), w.queue_rows) for w in s.workers),
    ),
    Metric("workers", "workers", "Workers of the plan.", DRIVER, (), lambda s: [((), float(len(s.workers)))]),
)  # fmt: skip
"""All of them."""

"""A snapshot of modelled workers: what the policies see, as they would see it of a running app."""

import itertools

import numpy as np

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Slice, Snapshot, Source
from springtide.simulator.model.epochs import Epochs
from springtide.simulator.model.placement import Floats
from springtide.simulator.model.window import Window
from springtide.simulator.scenario.scenario import OperatorModel

DETAILED = 4096
"""A snapshot tells of each slice, unless there are more than this."""


def look(now: float, window: Window, epochs: Epochs, lag_s: float, pause_s: float) -> Snapshot:
    """The window as a snapshot."""
    scenario, books, placement = epochs.scenario, epochs.books, epochs.placement
    took_s = now - window.began_s
    numbers = [placement.number[worker] for worker in placement.ring.workers]
    waiting = _waiting(now, epochs)
    detailed = placement.slices * len(scenario.operators) <= DETAILED
    workers = []
    none = np.zeros(len(placement.workers))
    busy_s = sum((_full(useful, len(none)) for useful in window.useful_s.values()), none)
    queued = sum(waiting.values(), none)
    shares = np.stack((np.minimum(1.0, busy_s / (took_s * placement.slots)), queued), axis=1)[numbers].tolist()
    for number, (cpu, queue) in zip(numbers, shares, strict=True):
        worker = placement.workers[number]
        workers.append(MeasuredWorker(worker.id, worker.slots, cpu, queue, worker.host))
    return Snapshot(
        at=now,
        window_s=took_s,
        epochs=window.epochs,
        sources=tuple(
            Source(name, (a.due(now) - a.due(window.began_s)) / took_s, books.lag(name, now), lag_s)
            for name, a in books.arrivals.items()
        ),
        edges=tuple(Edge(upstream, o.name) for o in scenario.operators for upstream in o.inputs),
        instances=tuple(i for o in scenario.operators for i in _instances(o, window, epochs, numbers, waiting[o.name])),
        workers=tuple(workers),
        slices=tuple(s for o in scenario.operators for s in _slices(o, window, epochs, took_s)) if detailed else (),
        traffic=_traffic(window, epochs, took_s, numbers) if detailed else {},
        pause_s=pause_s,
        epoch_s=window.epochs_s / window.epochs if window.epochs else 0.0,
    )


def _waiting(now: float, epochs: Epochs) -> dict[str, Floats]:
    """By operator and worker: rows that wait; those still at their sources wait for whom they will reach first."""
    found = {}
    for operator in epochs.scenario.operators:
        rows = epochs.books.accounts[operator.name].waiting
        rows += sum(epochs.books.lag(name, now) for name in operator.inputs if name in epochs.books.arrivals)
        found[operator.name] = rows * epochs.placement.load(operator.name)
    return found


def _instances(
    operator: OperatorModel, window: Window, epochs: Epochs, numbers: list[int], waiting: Floats
) -> list[Instance]:
    """As many on a worker as it has slots, each with the same share of its rows."""
    placement = epochs.placement
    size = len(placement.workers)
    rows = _full(window.rows_in.get(operator.name, np.zeros(0)), size)
    useful = _full(window.useful_s.get(operator.name, np.zeros(0)), size)
    ratio = window.rows_out.get(operator.name, 0.0) / rows.sum() if rows.sum() else 0.0
    owned = np.bincount(placement.owner[operator.name], minlength=size) * placement.bytes_of(operator)
    slots = placement.slots
    columns = (rows / slots, useful / slots, waiting / slots, owned / slots)
    shares = np.stack(columns, axis=1)[numbers].tolist()
    name, workers, count = operator.name, placement.workers, itertools.count()
    each = range(epochs.scenario.cluster.slots)
    return [
        Instance(name, next(count), workers[number].id, useful_s, rows_in, rows_in * ratio, queue, useful_s, int(state))
        for number, (rows_in, useful_s, queue, state) in zip(numbers, shares, strict=True)
        for _ in each
    ]


def _slices(operator: OperatorModel, window: Window, epochs: Epochs, took_s: float) -> list[Slice]:
    placement = epochs.placement
    rows = float(window.rows_in.get(operator.name, np.zeros(1)).sum()) / took_s
    useful_s = float(window.useful_s.get(operator.name, np.zeros(1)).sum()) / took_s
    weights, owners = placement.weight[operator.name].tolist(), placement.owner[operator.name].tolist()
    return [
        Slice(operator.name, SliceId(i), placement.workers[owner].id, rows * weight, useful_s * weight)
        for i, (weight, owner) in enumerate(zip(weights, owners, strict=True))
    ]


def _traffic(
    window: Window, epochs: Epochs, took_s: float, numbers: list[int]
) -> dict[tuple[str, WorkerId, SliceId], float]:
    """Bytes a second from a worker to a slice of the next operator: its partner's, and a share of all others'."""
    placement, found = epochs.placement, {}
    ids = [worker.id for worker in placement.workers]
    for operator in epochs.scenario.operators:
        upstream = next((name for name in operator.inputs if name in epochs.books.accounts), None)
        if upstream is None:
            continue
        sent = float(window.rows_in.get(operator.name, np.zeros(1)).sum()) / took_s * operator.row_bytes
        spread = (1 - operator.affinity) * placement.load(upstream)
        partner = placement.owner[upstream][placement.partner[operator.name]]
        for i, weight in enumerate(placement.weight[operator.name].tolist()):
            for number in numbers:
                share = spread[number] + operator.affinity * (partner[i] == number)
                if share > 0:
                    found[operator.name, ids[number], SliceId(i)] = float(sent * weight * share)
    return found


def _full(values: Floats, size: int) -> Floats:
    return np.pad(values, (0, size - len(values)))

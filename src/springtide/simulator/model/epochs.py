"""Epochs, as Springtide runs them: all operators share all slots, and an epoch waits for its slowest worker."""

from dataclasses import dataclass

import numpy as np

from springtide.simulator.model.placement import Floats, Ints, Placement
from springtide.simulator.model.window import Window
from springtide.simulator.report.books import Books
from springtide.simulator.scenario.scenario import OperatorModel, Scenario


@dataclass(frozen=True)
class Part:
    """What one operator does in an epoch."""

    operator: OperatorModel
    rows: int
    """Those that reach it."""
    kept: int
    """Of these, rows of stalled slices."""
    released: int
    """Rows kept earlier that are seen now."""
    rows_by_worker: Floats
    useful_s: Floats
    """By worker."""
    remote_rows: float


@dataclass(frozen=True)
class Epoch:
    """Rows on their way; nothing counts before it is over."""

    taken: dict[str, int]
    parts: tuple[Part, ...]
    seconds: float


class Epochs:
    """The work of an app, one epoch after the other."""

    def __init__(self, scenario: Scenario, books: Books, placement: Placement, rng: np.random.Generator) -> None:
        self.scenario, self.books, self.placement, self.rng = scenario, books, placement, rng
        self.stalled: dict[str, Ints] = {}
        """By operator: slices whose rows are kept for later."""
        self.released: dict[str, int] = {}
        self.owed_s: dict[str, Floats] = {}
        """By operator and worker: time that new owners need for rows that others have seen before."""

    def plan(self, now: float) -> Epoch:
        """The next epoch, with all rows that are due."""
        flow = self.scenario.flow
        taken = self._take(now)
        arriving = dict(taken)
        parts, seconds = [], flow.overhead_s
        for operator in self.scenario.operators:
            rows = sum(arriving[name] for name in operator.inputs)
            part, took_s = self._part(operator, rows)
            account = self.books.accounts[operator.name]
            done = account.done + rows - part.kept + part.released
            arriving[operator.name] = int(done * operator.selectivity) - account.pushed
            parts.append(part)
            seconds += took_s
        if flow.jitter:
            seconds *= max(0.1, self.rng.normal(1.0, flow.jitter))
        return Epoch(taken, tuple(parts), seconds)

    def commit(self, epoch: Epoch, windows: tuple[Window, ...]) -> None:
        """An epoch is over: its rows count."""
        for source, rows in epoch.taken.items():
            self.books.taken[source] += rows
            for window in windows:
                window.took(source, rows)
        for part in epoch.parts:
            account = self.books.accounts[part.operator.name]
            account.waiting += part.kept - part.released
            pushed = self.books.do(part.operator, part.rows - part.kept + part.released)
            crossing = part.rows if self._upstream(part.operator) else 0
            for window in windows:
                window.add(part.operator.name, part.rows_by_worker, part.useful_s, pushed)
                window.remote_rows += part.remote_rows
                window.crossing_rows += crossing
        for window in windows:
            window.epochs += 1
            window.epochs_s += epoch.seconds
        self.released, self.owed_s = {}, {}

    def unstall(self) -> None:
        """New owners serve: rows that were kept are seen in the next epoch."""
        for operator in self.scenario.operators:
            slices = self.stalled.get(operator.name)
            waiting = self.books.accounts[operator.name].waiting
            if slices is not None and waiting:
                share = self.placement.weight[operator.name][slices].sum()
                self.owe(operator, waiting / share, slices)
                self.released[operator.name] = waiting
        self.stalled = {}

    def owe(self, operator: OperatorModel, rows: float, slices: Ints) -> None:
        """The owners of these slices have to see their share of the operator's last `rows` rows."""
        load = self.placement.load_of(operator.name, slices)
        before = self.owed_s.get(operator.name, np.zeros(0))
        owed = rows * load * self.service_s(operator)
        owed[: len(before)] += before
        self.owed_s[operator.name] = owed

    def service_s(self, operator: OperatorModel) -> float:
        """Time on one row, with as many instances as there are."""
        return float(operator.service_s * max(1, self.placement.instances(operator.name)) ** (1 - operator.exponent))

    def remote(self, operator: OperatorModel) -> Floats:
        """By worker: the share of the operator's rows that reach it from another host."""
        upstream = self._upstream(operator)
        placement = self.placement
        if not upstream:
            return np.zeros(len(placement.workers))
        owner, weight = placement.owner[operator.name], placement.weight[operator.name]
        hosts = placement.hosts
        at_host = np.bincount(hosts, placement.load(upstream), int(hosts.max()) + 1)
        partner = placement.owner[upstream][placement.partner[operator.name]]
        away = operator.affinity * (hosts[partner] != hosts[owner])
        away = away + (1 - operator.affinity) * (1 - at_host[hosts[owner]])
        return np.bincount(owner, weight * away, len(placement.workers)).astype(np.float64)

    def _upstream(self, operator: OperatorModel) -> str | None:
        return next((name for name in operator.inputs if name in self.books.accounts), None)

    def _take(self, now: float) -> dict[str, int]:
        due = {source: self.books.lag(source, now) for source in self.books.arrivals}
        most, every = self.scenario.flow.most_rows, sum(due.values())
        if most is None or every <= most:
            return due
        return {source: rows * most // every for source, rows in due.items()}

    def _part(self, operator: OperatorModel, rows: int) -> tuple[Part, float]:
        placement = self.placement
        load = placement.load(operator.name)
        kept = 0
        if operator.name in self.stalled:
            held = placement.load_of(operator.name, self.stalled[operator.name])
            kept = min(rows, int(rows * held.sum()))
            load = load - held
        by_worker = rows * load
        useful_s = by_worker * self.service_s(operator)
        remote_rows = 0.0
        if operator.remote_s:
            away = rows * self.remote(operator)
            useful_s = useful_s + away * operator.remote_s
            remote_rows = float(away.sum())
        released = self.released.get(operator.name, 0)
        busy_s = useful_s
        if operator.name in self.owed_s:
            owed = self.owed_s[operator.name]
            busy_s = useful_s + np.pad(owed, (0, len(useful_s) - len(owed)))
        took_s = float((busy_s / placement.slots).max())
        return Part(operator, rows, kept, released, by_worker, useful_s, remote_rows), took_s

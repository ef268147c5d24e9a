"""Computing an epoch: every keyed step updated, level by level, under one plan or, if the workers are swapped, two."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.dataflow.graph import Keyed, Source
from springtide.engine.durability.history import History
from springtide.engine.durability.spark_log import entry, giving_rows, offsets, planned_us
from springtide.engine.durability.stop_state import StopState
from springtide.engine.epoch.accounts import accounts, shed_for
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.epoch.computed import Computed
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.epoch.event_time import moment_of
from springtide.engine.epoch.inputs import Inputs
from springtide.engine.epoch.keyed_step import Setting, Updated, run_capture, run_keyed
from springtide.engine.ownership.standby import Kept
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.wire.retry_signals import Halted
from springtide.engine.worker.cleanup import Housekeeping
from springtide.ids import Epoch
from springtide.metrics.report import OperatorReport
from springtide.migration.phase import Point
from springtide.plan.plan import Plan
from springtide.plan.shedding import Shedding
from springtide.state.logic import Moment

FEW_ROWS = 20_000
"""An epoch with fewer rows costs less without preparing them before the shuffle."""


@dataclass
class Done:
    """The steps that an epoch has got through so far."""

    operators: dict[str, OperatorState] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    reports: list[OperatorReport] = field(default_factory=list)

    def add(self, step: str, updated: Updated) -> None:
        self.operators[step], self.kept[step] = updated.state, updated.kept
        self.reports.append(updated.report)

    def stored(self, states: States) -> None:
        """The workers were swapped: their state is in the durable store, and what stood by for it is gone."""
        for step in self.operators:
            self.operators[step] = states[step]
            self.kept[step] = Kept(self.kept[step].moment, {})


class EpochComputation:
    """Computes epochs for an app; what it makes is not true before its manifest is committed."""

    def __init__(self, app: str, bound: BoundGraph, inputs: Inputs, history: History, pool: ExecutorPool) -> None:
        self.app, self.bound, self.inputs, self.history, self.pool = app, bound, inputs, history, pool
        self._rows_in: dict[str, int] = {}
        """By keyed step: the rows of its last epoch, the guess for the next."""

    def frames(self, batch: DataFrame, epoch: Epoch, shedding: Shedding) -> EpochDataFrames:
        """The rows of a micro-batch, ready to be computed with, or to be published again."""
        rows, taken = self.inputs.counted(batch)
        giving = self._giving(epoch) if self.inputs.apart is not None else None
        return EpochDataFrames(self.bound, self.inputs, rows, self.pool, epoch, shedding, taken, giving)

    def _giving(self, epoch: Epoch) -> tuple[int, ...] | None:
        """The numbers of the sources that have rows in an epoch; None if Spark's log does not tell."""
        before, now = (
            offsets(entry(self.history.store, each), self.history.sources) for each in (Epoch(epoch - 1), epoch)
        )
        return giving_rows(before, now) if now and (before or epoch == 0) else None

    def __call__(
        self, frames: EpochDataFrames, epoch: Epoch, parent: Manifest | None, plan: Plan, housekeeping: Housekeeping
    ) -> Computed:
        """Update all keyed steps, those that do not need each other side by side."""
        done, logged = Done(), entry(self.history.store, epoch)
        each_epoch = self.history.durability.each_epoch
        frames.moments = self._moments(parent, epoch, planned_us(logged))
        setting = Setting(
            self.app,
            epoch,
            plan,
            self.pool.storage,
            housekeeping,
            self.pool,
            self._readable(parent),
            each_epoch,
        )
        for level in self.bound.graph.levels():
            if self.pool.due(Point.ANYWHERE):
                raise Halted
            if self.pool.due(Point.OPERATORS):
                setting = self._swapped(done, frames, setting)
                parent = self.history.head
            update = self._update(frames, parent, setting)
            for node, updated in zip(level, _side_by_side(update, level), strict=True):
                done.add(node.name, updated)
                frames.outputs[node.name] = updated.output
                self._rows_in[node.name] = updated.report.rows_in
        for step in self.bound.graph.captured:
            frames.outputs[step], report = run_capture(step, frames, setting)
            done.reports.append(report)
        manifest = Manifest(
            self.app,
            epoch,
            "" if parent is None else parent.id,
            setting.plan.version,
            self.history.generation,
            done.operators,
            dict(frames.outputs),
            offsets(logged, self.history.sources),
            each_epoch,
            frames.shedding,
        )
        taken = None if frames.taken is None else frames.taken.rows()
        tallies = frames.tallies({} if taken is None else taken.by_source)
        graph, shed = self.bound.graph, frames.shedding
        reports = [replace(r, shed_rows=shed_for(graph, r.step, shed, tallies)) for r in done.reports]
        if taken is not None:
            taken = replace(taken, malformed=taken.malformed + sum(each.malformed for each in tallies.values()))
        return Computed(manifest, parent, done.kept, tuple(reports), accounts(graph, shed, tallies), taken)

    def _moments(self, parent: Manifest | None, epoch: Epoch, now_us: int | None) -> dict[str, Moment]:
        """By keyed step: what the epoch believes of time, by the manifest before it."""
        before: States = {} if parent is None else parent.operators
        paused_us = self._paused_us(epoch, now_us)
        idle_us = {step: self.bound.graph.idle_us(step, paused_us) for step in self.bound.logics}
        return {
            step: replace(
                moment_of(before.get(step, OperatorState()), logic.clock, now_us, idle_us[step]), now_us=now_us
            )
            for step, logic in self.bound.logics.items()
        }

    def _paused_us(self, epoch: Epoch, now_us: int | None) -> dict[str, int]:
        """By source that has rows in an epoch: how long ago the last one was planned, when rows were last looked for.

        So an epoch that takes long, or an app that was stopped, makes no source idle that goes on sending.
        """
        if now_us is None or all(source.idle_us is None for source in self.bound.graph.of(Source)):
            return {}
        last_us = planned_us(entry(self.history.store, Epoch(epoch - 1)))
        giving = self._giving(epoch)
        if last_us is None or giving is None:
            return {}
        return {self.inputs.names[number]: max(0, now_us - last_us) for number in giving}

    def _readable(self, parent: Manifest | None) -> bool:
        return self.pool.durable and self.history.durability.covers(parent)

    def _update(self, frames: EpochDataFrames, parent: Manifest | None, setting: Setting) -> Callable[[Keyed], Updated]:
        before = {} if parent is None else parent.operators

        def update(node: Keyed) -> Updated:
            few_rows = self._rows_in.get(node.name, FEW_ROWS) < FEW_ROWS
            return run_keyed(node, frames, before.get(node.name, OperatorState()), setting, few_rows=few_rows)

        return update

    def _swapped(self, done: Done, frames: EpochDataFrames, setting: Setting) -> Setting:
        """The workers are swapped in the midst of an epoch; it goes on from what was captured of it."""
        keeping = StopState(self.history, done.operators)
        plan = self.pool.swap(keeping)
        if plan is setting.plan:
            return setting
        done.stored(keeping.captured)
        frames.moved()
        return replace(setting, plan=plan, read_durable=self._readable(self.history.head))


def _side_by_side(update: Callable[[Keyed], Updated], level: tuple[Keyed, ...]) -> list[Updated]:
    if len(level) == 1:
        return [update(level[0])]
    with ThreadPoolExecutor(len(level)) as pool:
        return list(pool.map(update, level))

"""Computing an epoch: every keyed step updated, level by level, under one plan or, if the workers are swapped, two."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.dataflow.graph import Keyed
from springtide.engine.accounts import accounts, shed_for
from springtide.engine.bound import BoundGraph
from springtide.engine.computed import Computed
from springtide.engine.frames import EpochFrames
from springtide.engine.history import History
from springtide.engine.keeping import Keeping
from springtide.engine.keyed import Setting, Updated, run_capture, run_keyed
from springtide.engine.replan import Halted
from springtide.engine.sparklog import entry, offsets, planned_us
from springtide.engine.staff import Staff
from springtide.engine.standby import Kept
from springtide.engine.worker.housekeeping import Housekeeping
from springtide.ids import Epoch
from springtide.metrics.report import OperatorReport
from springtide.migration.phase import Point
from springtide.plan.plan import Plan

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


class Computing:
    """Computes epochs for an app; what it makes is not true before its manifest is committed."""

    def __init__(self, app: str, bound: BoundGraph, history: History, staff: Staff, generation: int) -> None:
        self.app, self.bound, self.history, self.staff = app, bound, history, staff
        self.generation = generation
        self._rows_in: dict[str, int] = {}
        """By keyed step: the rows of its last epoch, the guess for the next."""

    def __call__(
        self, frames: EpochFrames, epoch: Epoch, parent: Manifest | None, plan: Plan, housekeeping: Housekeeping
    ) -> Computed:
        """Update all keyed steps, those that do not need each other side by side."""
        done, logged = Done(), entry(self.history.store, epoch)
        each_epoch = self.history.durability.each_epoch
        setting = Setting(
            self.app, epoch, plan, self.staff.storage, housekeeping, self.staff, self._readable(parent), each_epoch,
            planned_us(logged),
        )  # fmt: skip
        for level in self.bound.graph.levels():
            if self.staff.due(Point.ANYWHERE):
                raise Halted
            if self.staff.due(Point.OPERATORS):
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
            self.app, epoch, "" if parent is None else parent.id, setting.plan.version, self.generation,
            done.operators, dict(frames.outputs), offsets(logged, self.history.sources), each_epoch,
            frames.shedding,
        )  # fmt: skip
        taken = None if frames.taken is None else frames.taken.rows()
        tallies = frames.tallies({} if taken is None else taken.by_source)
        graph, shed = self.bound.graph, frames.shedding
        reports = [replace(r, shed_rows=shed_for(graph, r.step, shed, tallies)) for r in done.reports]
        if taken is not None:
            taken = replace(taken, malformed=taken.malformed + sum(each.malformed for each in tallies.values()))
        return Computed(manifest, parent, done.kept, tuple(reports), accounts(graph, shed, tallies), taken)

    def _readable(self, parent: Manifest | None) -> bool:
        return self.staff.durable and self.history.durability.covers(parent)

    def _update(
        self, frames: EpochFrames, parent: Manifest | None, setting: Setting
    ) -> Callable[[Keyed], Updated]:
        before = {} if parent is None else parent.operators

        def update(node: Keyed) -> Updated:
            few_rows = self._rows_in.get(node.name, FEW_ROWS) < FEW_ROWS
            return run_keyed(node, frames, before.get(node.name, OperatorState()), setting, few_rows=few_rows)

        return update

    def _swapped(self, done: Done, frames: EpochFrames, setting: Setting) -> Setting:
        """The workers are swapped in the midst of an epoch; it goes on from what was captured of it."""
        keeping = Keeping(self.history, done.operators)
        plan = self.staff.swap(keeping)
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

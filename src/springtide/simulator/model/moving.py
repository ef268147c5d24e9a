"""Migrations: workers come, then the strategy's own steps are taken at epoch boundaries."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import simpy

from springtide.ids import SliceId, WorkerId
from springtide.migration.step import Flip, KeepReplicas, Stall, Step, Supply
from springtide.migration.strategies import LIVE
from springtide.plan.moves import Move
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.simulator.model.epochs import Epochs
from springtide.simulator.model.placement import Parcels
from springtide.simulator.report.story import MIGRATION, Story


@dataclass
class Change:
    """One migration under way."""

    what: str
    began_s: float
    parcels: Parcels | None = None
    steps: tuple[Step, ...] = ()
    at: int = 0
    ring: Ring | None = None
    leaving: frozenset[WorkerId] = frozenset()
    ready_s: float | None = None
    """When the targets have all they need."""
    flipped_s: float = 0.0
    base: dict[str, int] = field(default_factory=dict)
    """By operator: rows done when the targets had their copies."""
    moved_bytes: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """When each phase began."""


class Mover:
    """One migration at a time. `paid` are the workers there are, on the ring or on their way to it."""

    def __init__(self, env: simpy.Environment, epochs: Epochs, story: Story) -> None:
        self.env, self.epochs, self.story = env, epochs, story
        self.scenario, self.books, self.placement = epochs.scenario, epochs.books, epochs.placement
        self.change: Change | None = None
        self.wanted = self.scenario.cluster.workers
        self.paid = {worker.id for worker in self.placement.workers}
        self.spare: list[Worker] = []
        """They came in place of lost workers, and are not on the ring yet."""
        self._coming = 0
        self._warming: set[WorkerId] = set()
        self._unsettled = False
        """A migration ended half-way: not every slice lies where the ring has it."""
        self.paused_until_s = 0.0
        self.checkpoint: dict[str, int] = {}
        """By operator: rows done at the last peer checkpoint."""

    @property
    def busy(self) -> bool:
        return self.change is not None

    def scale(self, workers: int) -> None:
        """Grow or shrink to this number of workers."""
        now = len(self.placement.ring.workers)
        self.wanted = min(workers, self.placement.slices)
        self.change = Change(f"from {now} to {self.wanted} workers", self.env.now)
        if self.wanted > now:
            self.env.process(self._grow(self.change, self.wanted - now))
        else:
            staying = sorted(self.placement.ring.workers, key=lambda worker: self.placement.number[worker])
            leaving = frozenset(staying[self.wanted :])
            self.change.leaving = leaving
            self._begin(self.change, self.placement.ring.without(leaving).levelled())

    def rebalance(self, operator: str, slices: frozenset[SliceId], target: WorkerId) -> None:
        """Move some slices of an operator to a worker."""
        change = self.change = Change(f"{len(slices)} slices of {operator!r} to {target}", self.env.now)
        after = self.placement.owner[operator].copy()
        after[sorted(slices)] = self.placement.number[target]
        self._start(change, Parcels(self.placement, {operator: after}))

    def lost(self, workers: frozenset[WorkerId]) -> None:
        """What has begun to move can't go on as planned; others are asked for in place of the lost workers."""
        self.paid -= workers
        if self.change is not None and self.change.steps:
            self.epochs.unstall()
            self._end(self.change, "failed: a worker was lost")
            self._unsettled = True
            stranded = self.paid.difference(self.placement.ring.workers, self._warming)
            self.spare = [worker for worker in self.placement.workers if worker.id in stranded]
        self.spare = self._still_new(self.spare)
        leaving = self.change.leaving if self.change else frozenset()
        short = self.wanted - len(self.paid - leaving) - self._coming
        if short > 0:
            self.env.process(self._replace(short))

    def boundary(self) -> None:
        """Take the steps that can be taken between two epochs."""
        if self.change is None and (self.spare or self._unsettled):
            joining, self.spare, self._unsettled = self.spare, [], False
            self.change = Change(f"{len(joining)} workers in place of lost ones", self.env.now)
            self._begin(self.change, self.placement.ring.joined_by(joining).levelled())
        change = self.change
        if change is None or not change.steps:
            return
        while change.at < len(change.steps):
            step = change.steps[change.at]
            if not self._taken(change, step):
                return
            change.at += 1
            if isinstance(step, Flip) and change.at < len(change.steps):
                return
        self._end(change, "done")

    def _grow(self, change: Change, count: int) -> Generator[simpy.Event, Any, None]:
        new = yield from self._hired(count)
        if self.change is change:
            self._begin(change, self.placement.ring.joined_by(self._still_new(new)).levelled())

    def _still_new(self, workers: Sequence[Worker]) -> list[Worker]:
        """Those who are there, and whom a recovery has not taken on meanwhile."""
        return [worker for worker in workers if worker.id in self.paid and worker.id not in self.placement.ring.zones]

    def _replace(self, count: int) -> Generator[simpy.Event, Any, None]:
        new = yield from self._hired(count)
        self.spare = [*self.spare, *self._still_new(new)]

    def _hired(self, count: int) -> Generator[simpy.Event, Any, list[Worker]]:
        cluster = self.scenario.cluster
        self._coming += count
        yield self.env.timeout(cluster.start_s)
        self._coming -= count
        new = self.placement.hire(count)
        ids = {worker.id for worker in new}
        self.paid |= ids
        self._warming |= ids
        yield self.env.timeout(cluster.warm_up_s)
        self._warming -= ids
        return new

    def _begin(self, change: Change, ring: Ring) -> None:
        change.ring = ring
        self._start(change, self.placement.moves_to(ring))

    def _start(self, change: Change, parcels: Parcels) -> None:
        migration = self.scenario.migration
        change.parcels = parcels
        change.phases["copying"] = self.env.now
        if migration.stop_restart_s is not None:
            self.paused_until_s = self.env.now + migration.stop_restart_s
            change.steps = (Flip(tuple(parcels.moves)),)
            return
        options = migration.options
        if options.slices_an_epoch is not None:
            options = replace(options, slices_an_epoch=max(1, round(options.slices_an_epoch / parcels.mean)))
        if options.hottest_first:
            heat = {(m.operator, m.slice): self.placement.weight[m.operator][m.slice] for m in parcels.moves}
            options = replace(options, heat=heat)
        strategy = LIVE[migration.strategy]
        change.steps = strategy.steps(parcels.moves, options) if parcels.moves else (Flip(()),)

    def _taken(self, change: Change, step: Step) -> bool:
        """Takes a step; False if it takes longer than until now."""
        assert change.parcels is not None, "steps come with their moves"
        if isinstance(step, Stall):
            moving = change.parcels.by_operator(step.moves)
            self.epochs.stalled = {name: slices for name, (slices, _) in moving.items()}
        if isinstance(step, Supply):
            if change.ready_s is None:
                change.ready_s = self.env.now + self._copying_s(change, step.moves)
            if self.env.now < change.ready_s:
                return False
            change.base = {name: account.done for name, account in self.books.accounts.items()}
        if isinstance(step, Flip):
            self._flip(change, step.moves)
        return not isinstance(step, KeepReplicas) or self.env.now >= change.flipped_s + step.seconds

    def _flip(self, change: Change, moves: Sequence[Move]) -> None:
        """Each target owns its slices, and sees the rows since its copy was made."""
        assert change.parcels is not None, "steps come with their moves"
        if not change.flipped_s:
            change.phases["moving"] = self.env.now
        change.flipped_s = self.env.now
        moving = change.parcels.by_operator(moves)
        for name, (slices, targets) in moving.items():
            self.placement.give(name, slices, targets)
        if self.scenario.migration.stop_restart_s is not None:
            return
        models = {operator.name: operator for operator in self.scenario.operators}
        stalled = set(self.epochs.stalled)
        for name, (slices, _) in moving.items():
            if name not in stalled:
                since = max(change.base.get(name, 0), self.checkpoint.get(name, 0))
                self.epochs.owe(models[name], max(0, self.books.accounts[name].done - since), slices)
        if stalled:
            self.epochs.unstall()

    def _copying_s(self, change: Change, moves: Sequence[Move]) -> float:
        """All workers copy at once; the one that sends or takes in most is the last. Who stands by has a copy."""
        assert change.parcels is not None, "steps come with their moves"
        placement = self.placement
        sent = np.zeros(len(placement.workers))
        got = np.zeros(len(placement.workers))
        sizes = {operator.name: placement.bytes_of(operator) for operator in self.scenario.operators}
        on_ring = set(placement.ring.workers)
        backups = {
            source: placement.ring.backups(source, self.scenario.state.replicas)
            for source in {move.source for move in moves} & on_ring
        }
        for move in moves:
            if move.target not in backups.get(move.source, ()):
                size = change.parcels.size(move) * sizes[move.operator]
                sent[placement.number[move.source]] += size
                got[placement.number[move.target]] += size
        change.moved_bytes = float(got.sum())
        return float(max(sent.max(), got.max()) / self.scenario.cluster.bandwidth_bytes)

    def _end(self, change: Change, outcome: str) -> None:
        if outcome == "done" and change.ring is not None:
            self.placement.ring = change.ring
        if outcome == "done":
            self.paid -= change.leaving
        self.story.tell(
            self.env.now,
            MIGRATION,
            change.what,
            outcome=outcome,
            began_s=change.began_s,
            seconds=round(self.env.now - change.began_s, 3),
            slices=change.parcels.total if change.parcels else 0,
            bytes=round(change.moved_bytes),
            phases=change.phases,
        )
        self.change = None

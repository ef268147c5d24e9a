"""The steps of a live migration, taken at epoch boundaries: targets are supplied, slices change their owner."""

import time
from collections.abc import Callable, Sequence

from springtide import faults
from springtide.engine.migrate.growth import Growth
from springtide.engine.ownership.roster import Roster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.ids import Epoch, SliceId, WorkerId
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.migration.step import Flip, KeepReplicas, Stall, Step, Supply
from springtide.plan.moves import Move


class LiveSteps:
    """Takes a migration from step to step, and calls it off. All of it is done with the roster held."""

    def __init__(
        self,
        roster: SharedRoster,
        growth: Growth,
        copied_bytes: Callable[[], int],
        ready_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Targets may take `ready_s`. `copied_bytes` tells what peer checkpoints have copied so far."""
        self._shared, self._growth, self._copied_bytes = roster, growth, copied_bytes
        self._ready_s, self._clock = ready_s, clock
        self._stalled_at = Epoch(0)
        """The last epoch that stalled slices have seen."""

    @property
    def _roster(self) -> Roster:
        return self._shared.mine

    def begin(self, migration: Migration, moves: Sequence[Move], steps: Sequence[Step]) -> None:
        """All that it needs is there, and what is copied from now on is for it."""
        migration.copied_before = self._copied_bytes()
        migration.begin(moves, steps)

    def advance(self, migration: Migration) -> None:
        """Take the steps that can be taken at this boundary."""
        while (step := migration.step) is not None:
            if isinstance(step, Stall):
                self._stall(step.moves)
            if isinstance(step, Supply) and not self._supplied(migration, step):
                return
            if isinstance(step, Flip):
                faults.fire("plan.flip")
                self._flip(step.moves)
                migration.flipped += step.moves
                migration.enter(MigrationState.MOVING)
                migration.flipped_s = self._clock()
                migration.go_on()
                if migration.step is not None:
                    return
                break
            if isinstance(step, KeepReplicas) and self._clock() - migration.flipped_s < step.seconds:
                return
            migration.go_on()
        self._finish(migration)

    def ripe(self, migration: Migration) -> bool:
        """Whether `advance` could do something now."""
        step = migration.step
        if isinstance(step, Supply) and migration.entered and self._roster.head is not None:
            return self._there(step) or self._clock() > migration.deadline_s
        if isinstance(step, KeepReplicas):
            return self._clock() - migration.flipped_s >= step.seconds
        return True

    def _supplied(self, migration: Migration, step: Supply) -> bool:
        """Whether the targets have all they need. The first time, they begin to stand by."""
        roster = self._roster
        if not migration.entered:
            replicas = roster.standing_by()
            for move in step.moves:
                there = replicas[move.operator][move.slice]
                if move.target not in there:
                    replicas[move.operator][move.slice] = (*there, move.target)
            roster.change(roster.owners(), replicas, keep_stalled=True)
            migration.entered = True
            migration.deadline_s = self._clock() + self._ready_s
        if self._there(step):
            migration.bytes = self._copied_bytes() - migration.copied_before
            return True
        if self._clock() > migration.deadline_s:
            self.call_off(migration, f"the targets were not ready in {self._ready_s:.0f} s", MigrationState.FAILED)
        else:
            roster.hurry()
        return False

    def _there(self, step: Supply) -> bool:
        """Whether the targets have all they need."""
        wanted: dict[tuple[str, WorkerId], set[SliceId]] = {}
        for move in step.moves:
            wanted.setdefault((move.operator, move.target), set()).add(move.slice)
        return all(slices <= self._able(operator, target) for (operator, target), slices in wanted.items())

    def _able(self, operator: str, target: WorkerId) -> frozenset[SliceId]:
        """The slices that a target could own from the next epoch on; of stalled ones, it needs a copy alone."""
        roster = self._roster
        assert roster.head is not None, "steps are taken between epochs"
        if roster.plan.operators[operator].stalled:
            return roster.standbys.holds(operator, target, self._stalled_at)
        return roster.standbys.ready(operator, target, roster.head.epoch)

    def _stall(self, some: Sequence[Move]) -> None:
        """The rows of moving slices are kept for later, until their new owner serves."""
        roster = self._roster
        assert roster.head is not None, "steps are taken between epochs"
        stalled: dict[str, frozenset[SliceId]] = {}
        for move in some:
            stalled[move.operator] = stalled.get(move.operator, frozenset()) | {move.slice}
        self._stalled_at = roster.head.epoch
        roster.plan = roster.plan.next(roster.owners(), roster.standing_by(), stalled=stalled)

    def _flip(self, some: Sequence[Move]) -> None:
        """The targets own the slices; the former owners stand by."""
        owners, replicas = self._roster.owners(), self._roster.standing_by()
        for move in some:
            owners[move.operator][move.slice] = move.target
            there = tuple(w for w in replicas[move.operator][move.slice] if w != move.target)
            replicas[move.operator][move.slice] = (move.source, *there)
        self._roster.change(owners, replicas)

    def _finish(self, migration: Migration) -> None:
        if migration.cancelling:
            self._roster.leaving |= migration.joining
            migration.end(MigrationState.CANCELLED, migration.message)
            return
        if migration.ring is not None:
            self._roster.ring = migration.ring
        self._roster.leaving |= migration.leaving
        migration.end(MigrationState.DONE)

    def call_off(self, migration: Migration, why: str, state: MigrationState = MigrationState.CANCELLED) -> None:
        """Nothing more moves; what has moved goes back, if the way is open."""
        roster = self._roster
        migration.message = why
        if migration.stops:
            self._growth.undo()
            migration.end(state, why)
            return
        if migration.joining or migration.leaving:
            roster.wanted = len(roster.staying()) - len(migration.joining)
        elif not migration.begun:
            self._growth.undo()
        if migration.flipped:
            back = tuple(Move(m.operator, m.slice, m.target, m.source) for m in migration.flipped)
            migration.cancelling, migration.at, migration.entered = True, 0, False
            migration.steps = (Supply(back), Flip(back))
            return
        roster.leaving |= migration.joining
        roster.change(roster.owners(), roster.standing_by())
        migration.end(state, why)

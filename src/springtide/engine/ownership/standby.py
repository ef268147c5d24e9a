"""What workers that stand by hold of others' slices, as the driver knows it.

A worker that stands by for a slice has an older state of it (the *base*: copies of the runs of some
committed epoch) and the rows of every epoch since (the *backups*). Together they give the current state.
A peer checkpoint moves the base forward, and the backups it covers are let go. All of this is soft: if
the driver forgets it, workers are supplied anew.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import Manifest, OperatorState, Pending
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Behind, Parts
from springtide.ids import Epoch, SliceId, WorkerId
from springtide.plan.plan import OperatorPlan, Plan
from springtide.state.logic import Moment


@dataclass(frozen=True)
class Copy:
    """Some slices of a run that a worker needs to stand by for them."""

    run: BlockRef
    slices: frozenset[SliceId]
    source: WorkerId
    target: WorkerId


@dataclass(frozen=True)
class Backup:
    """The rows of one epoch that a worker keeps for some slices; no block if there were none."""

    slices: frozenset[SliceId]
    block: BlockRef | None


@dataclass(frozen=True)
class Kept:
    """What an epoch left of one operator with those who stand by."""

    moment: Moment
    backups: Mapping[WorkerId, Backup]


class Standbys:
    """Bases, backups and parts, by operator and worker."""

    def __init__(self) -> None:
        self._bases: dict[tuple[str, WorkerId], dict[SliceId, Epoch]] = defaultdict(dict)
        self._states: dict[Epoch, Mapping[str, OperatorState]] = {}
        self._kept: dict[Epoch, Mapping[str, Kept]] = {}
        self._parts: dict[WorkerId, dict[str, tuple[BlockRef, ...]]] = defaultdict(dict)
        self._copying: Manifest | None = None
        self._lacking: dict[tuple[str, WorkerId], frozenset[SliceId]] = defaultdict(frozenset)
        """Slices whose runs a worker should have, as it wrote them, and has not."""
        self._unsound: set[tuple[str, WorkerId]] = set()
        """Runs that a worker wrote and has no more, or not with the right bytes."""
        self._let_go: list[str] = []
        """Blocks that workers can remove."""
        self._current: set[str] = set()
        """The runs of the last manifest: an owner may serve from parts that it got while it stood by."""

    def parts(self) -> Mapping[WorkerId, Parts]:
        """By worker: the parts it holds."""
        return {worker: dict(parts) for worker, parts in self._parts.items()}

    def ready(self, step: str, worker: WorkerId, head: Epoch) -> frozenset[SliceId]:
        """The slices whose state after an epoch the worker could produce by itself."""
        bases = self._bases.get((step, worker), {})
        unseen = {base: self._states[base][step].owed() for base in set(bases.values())}
        found = set()
        for slice_id, base in bases.items():
            if slice_id in unseen[base]:
                continue  # The base lacks epochs that came before it, and their backups may be gone.
            missed = (self._backup(step, worker, Epoch(e)) for e in range(base + 1, head + 1))
            if all(backup is not None and slice_id in backup.slices for backup in missed):
                found.add(slice_id)
        return frozenset(found)

    def holds(self, step: str, worker: WorkerId, since: Epoch) -> frozenset[SliceId]:
        """The slices whose state the worker has a copy of, not older than an epoch."""
        return frozenset(s for s, base in self._bases.get((step, worker), {}).items() if base >= since)

    def takeovers(
        self, step: str, plan: OperatorPlan, before: Mapping[SliceId, WorkerId], head: Epoch, state: OperatorState
    ) -> tuple[Behind, ...]:
        """How new owners get to the state after the head epoch, where they stood by for it."""
        behind_all = state.owed()
        groups: dict[tuple[WorkerId, Epoch], set[SliceId]] = defaultdict(set)
        ready: dict[WorkerId, frozenset[SliceId]] = {}
        for number, owner in enumerate(plan.owners):
            slice_id = SliceId(number)
            if before.get(slice_id, owner) == owner or slice_id in behind_all:
                continue
            if owner not in ready:
                ready[owner] = self.ready(step, owner, head)
            if slice_id in ready[owner]:
                groups[owner, self._bases[step, owner][slice_id]].add(slice_id)
        return tuple(
            Behind(worker, frozenset(slices), self._states[base][step].runs, self._missed(step, worker, base, head))
            for (worker, base), slices in groups.items()
        )

    def copies(self, manifest: Manifest, plan: Plan) -> list[Copy]:
        """What is lacking for everybody who stands by to have this manifest's state as a base."""
        found = []
        for step, share in plan.operators.items():
            for worker in plan.workers:
                standby = share.standby(worker.id)
                for run in manifest.operators[step].runs if standby else ():
                    lacking = (run.slices & standby) - self._held(worker.id, run)
                    for source, slices in self.holders(run, lacking, share, plan).items():
                        found.append(Copy(run, frozenset(slices), source, worker.id))
        return found

    def holders(
        self, run: BlockRef, slices: frozenset[SliceId], share: OperatorPlan, plan: Plan
    ) -> Mapping[WorkerId, set[SliceId]]:
        """Who can give a run's slices: the worker that wrote it, else one that got parts of it, owners first.

        If nobody is known to have a slice, its owner is asked, who may find it in the durable store.
        """
        found: dict[WorkerId, set[SliceId]] = defaultdict(set)
        writer = WorkerId(run.worker)
        written = plan.worker(writer) is not None and (run.name, writer) not in self._unsound
        lost = self._lacking.get((run.operator, writer), frozenset())
        for slice_id in slices:
            if written and slice_id not in lost:
                found[writer].add(slice_id)
                continue
            owner = share.owners[slice_id]
            others = (worker.id for worker in plan.workers)
            able = (w for w in (owner, *others) if slice_id in self._in_parts(w, run))
            found[next(able, owner)].add(slice_id)
        return found

    def copying(self, manifest: Manifest) -> None:
        """A peer checkpoint of this manifest starts: its blocks must stay, and so must backups of later epochs."""
        self._copying = manifest

    def copied(self, manifest: Manifest, plan: Plan, parts: Iterable[tuple[str, BlockRef]]) -> None:
        """A peer checkpoint has ended well: these parts, by the run they are of, are where they belong."""
        if self._copying is None:  # Somebody was found to lack something meanwhile.
            self.given_up(part.name for _, part in parts)
            return
        for run, part in parts:
            held = self._parts[WorkerId(part.worker)]
            held[run] = (*held.get(run, ()), part)
        self._states[manifest.epoch] = manifest.operators
        for step, share in plan.operators.items():
            for worker in plan.workers:
                bases = self._bases[step, worker.id]
                for slice_id in share.standby(worker.id):
                    bases[slice_id] = max(bases.get(slice_id, manifest.epoch), manifest.epoch)
        self._copying = None

    def given_up(self, written: Iterable[str] = ()) -> None:
        """A peer checkpoint has failed: nobody's base has changed, and what it wrote is of no use."""
        self._let_go += written
        self._copying = None

    def committed(
        self, manifest: Manifest, parent: Manifest | None, plan: Plan, before: Plan, kept: Mapping[str, Kept]
    ) -> tuple[str, ...]:
        """An epoch is true: what it left with those who stand by counts. Returns what they can let go."""
        self._kept[manifest.epoch] = kept
        self._current = {run.name for state in manifest.operators.values() for run in state.runs}
        if before is not plan and parent is not None:
            self._former_owners(parent, plan, before)
        return self._evict(manifest.epoch, plan)

    def _former_owners(self, parent: Manifest, plan: Plan, before: Plan) -> None:
        """Who owned a slice until the epoch before, and stands by now, has the state of that epoch."""
        for step, share in plan.operators.items():
            for number, owner in enumerate(before.operators[step].owners):
                if owner != share.owners[number] and owner in share.replicas_of(number):
                    self._bases[step, owner][SliceId(number)] = parent.epoch
                    self._states[parent.epoch] = parent.operators

    def lost(self, workers: Iterable[WorkerId]) -> None:
        """Workers are gone, with all they held."""
        for worker in workers:
            self._parts.pop(worker, None)
            for key in [key for key in self._bases if key[1] == worker]:
                del self._bases[key]
            for key in [key for key in self._lacking if key[1] == worker]:
                del self._lacking[key]

    def lacking(self, step: str, worker: WorkerId, slices: frozenset[SliceId]) -> None:
        """A worker was found not to have what it should: it has to be supplied anew."""
        for slice_id in slices:
            self._bases[step, worker].pop(slice_id, None)
        self._lacking[step, worker] |= slices
        self._copying = None
        for name, parts in list(self._parts[worker].items()):
            left = [part.without(slices) if part.operator == step else part for part in parts]
            self._let_go += [part.name for part, kept in zip(parts, left, strict=True) if kept is None]
            self._parts[worker][name] = tuple(part for part in left if part is not None)

    def unsound(self, faults: Iterable[Fault]) -> bool:
        """Blocks were found missing or damaged: they are no copies any more. True if that was not known."""
        news = False
        for fault in faults:
            block, worker = fault.block, fault.worker
            slices = block.slices
            for run, parts in list(self._parts[worker].items()):
                left = tuple(part for part in parts if part.name != block.name)
                news |= left != parts
                self._parts[worker][run] = left
            if block.worker == worker and (block.name, worker) not in self._unsound:
                self._unsound.add((block.name, worker))
                news = True
            for slice_id in slices:
                self._bases[block.operator, worker].pop(slice_id, None)
            self._copying = None
        return news

    def pinned(self) -> set[str]:
        """The runs that bases need, beside those of the last manifests."""
        states = list(self._states.values())
        if self._copying is not None:
            states.append(self._copying.operators)
        return {run.name for operators in states for state in operators.values() for run in state.runs}

    def held(self) -> set[str]:
        """All blocks that workers hold for others."""
        parts = {part.name for held in self._parts.values() for some in held.values() for part in some}
        return {*parts, *(block.name for block in self._backups()), *self._let_go}

    def backup_bytes(self) -> int:
        """What is kept of epochs that no base covers yet."""
        return sum(block.size_bytes for block in self._backups())

    def _backups(self) -> list[BlockRef]:
        backups = (b for kept in self._kept.values() for k in kept.values() for b in k.backups.values())
        return [backup.block for backup in backups if backup.block is not None]

    def _backup(self, step: str, worker: WorkerId, epoch: Epoch) -> Backup | None:
        kept = self._kept.get(epoch, {}).get(step)
        return None if kept is None else kept.backups.get(worker)

    def _missed(
        self, step: str, worker: WorkerId, base: Epoch, head: Epoch
    ) -> tuple[tuple[Moment, BlockRef | None], ...]:
        found = []
        for number in range(base + 1, head + 1):
            backup = self._backup(step, worker, Epoch(number))
            found.append((self._kept[Epoch(number)][step].moment, None if backup is None else backup.block))
        return tuple(found)

    def _held(self, worker: WorkerId, run: BlockRef) -> frozenset[SliceId]:
        """The slices of a run that a worker has: all if it wrote it."""
        held = self._in_parts(worker, run)
        if run.worker != worker or (run.name, worker) in self._unsound:
            return held
        return held | run.slices - self._lacking.get((run.operator, worker), frozenset())

    def _in_parts(self, worker: WorkerId, run: BlockRef) -> frozenset[SliceId]:
        """The slices of a run that a worker has copies of."""
        parts = self._parts.get(worker, {}).get(run.name, ())
        return frozenset().union(*(part.slices for part in parts))

    def _evict(self, head: Epoch, plan: Plan) -> tuple[str, ...]:
        """Forget what no standby in the plan needs any more; the names of blocks to remove."""
        for (step, worker), bases in list(self._bases.items()):
            share = plan.operators.get(step)
            standby = share.standby(worker) if share is not None else frozenset()
            for slice_id in [s for s in bases if s not in standby]:
                del bases[slice_id]
        used = {base for bases in self._bases.values() for base in bases.values()}
        self._states = {epoch: state for epoch, state in self._states.items() if epoch in used}
        if self._copying is not None:
            used.add(self._copying.epoch)
        gone = self._evict_backups(head, min(used, default=head))
        waiting, self._let_go = self._let_go, []
        return (*gone, *self._evict_parts(), *waiting)

    def _evict_backups(self, head: Epoch, oldest: Epoch) -> list[str]:
        """A backup goes once every base is at its epoch or later; without bases, the newest alone are of use."""
        covered = [e for e in self._kept if e <= oldest and e < head]
        blocks = [b.block for e in covered for k in self._kept.pop(e).values() for b in k.backups.values()]
        return [block.name for block in blocks if block is not None]

    def _evict_parts(self) -> list[str]:
        """A part goes once no base, no copy under way and no owner's chain needs its run."""
        needed, gone = self.pinned() | self._current, []
        self._unsound = {(name, worker) for name, worker in self._unsound if name in needed}
        for held in self._parts.values():
            for name in [name for name in held if name not in needed]:
                gone += [part.name for part in held.pop(name)]
        return gone


def owed(state: OperatorState, plan: OperatorPlan) -> tuple[Behind, ...]:
    """Slices that were stalled and are no longer: their owners have to see the epochs they have missed."""
    groups: dict[tuple[WorkerId, tuple[Pending, ...]], set[SliceId]] = defaultdict(set)
    for slice_id in state.owed() - plan.stalled:
        unseen = tuple(p for p in state.pending if slice_id in p.slices)
        groups[plan.owners[slice_id], unseen].add(slice_id)
    return tuple(
        Behind(
            worker,
            frozenset(slices),
            state.runs,
            tuple((Moment(p.watermark_us, p.previous_watermark_us), p.block) for p in unseen),
            owed=True,
        )
        for (worker, unseen), slices in groups.items()
    )

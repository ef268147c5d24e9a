"""Workers that stand by for each other, without Spark: what lies on each disk, and whose rows are in it.

A run is modelled as the epochs whose rows it has, slice by slice. So the state of a slice is right if the
epochs in its chain are those that had rows for it, each once and in order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from springtide.blocks.block import BACKUP, PART, RUN, BlockRef
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.engine.ownership.standby import Backup, Copy, Kept, Standbys
from springtide.engine.worker.open_state import Behind
from springtide.ids import Epoch, InstanceId, PlanVersion, SliceId, WorkerId
from springtide.plan.plan import OperatorPlan, Plan, assign
from springtide.plan.worker import Worker
from springtide.state.logic import Moment

STEP = "counts"
SLICES = 8
EVERY = frozenset(map(SliceId, range(SLICES)))

Epochs = tuple[int, ...]
Replicas = Sequence[tuple[WorkerId, ...]]


@dataclass
class Checkpoint:
    """A peer checkpoint under way."""

    manifest: Manifest
    plan: Plan
    copies: list[Copy]


@dataclass
class Model:
    """The driver's book of who stands by, beside what is really on the disks."""

    plan: Plan
    standbys: Standbys = field(default_factory=Standbys)
    head: Manifest | None = None
    parent: Manifest | None = None
    served: Plan | None = None
    checkpoint: Checkpoint | None = None
    rows: list[frozenset[SliceId]] = field(default_factory=list)
    """By epoch: the slices that had rows."""
    kept: list[Mapping[WorkerId, frozenset[SliceId]]] = field(default_factory=list)
    """By epoch: who kept its rows, and of which slices."""
    contents: dict[str, dict[SliceId, Epochs]] = field(default_factory=dict)
    """By block: the epochs whose rows it has."""
    disks: dict[WorkerId, set[str]] = field(default_factory=lambda: defaultdict(set))
    durable: set[str] = field(default_factory=set)
    durable_reads: int = 0
    _names: "count[int]" = field(default_factory=count)

    @classmethod
    def of(cls, owners: Sequence[WorkerId], replicas: Replicas, *, slots: int = 1) -> "Model":
        ids = dict.fromkeys([*owners, *(w for some in replicas for w in some)])
        workers = tuple(Worker(w, slots=slots) for w in sorted(ids))
        return cls(Plan(PlanVersion(1), SLICES, workers, {STEP: assign(owners, replicas, workers)}))

    # Plans

    @property
    def share(self) -> OperatorPlan:
        return self.plan.operators[STEP]

    @property
    def workers(self) -> list[WorkerId]:
        return [worker.id for worker in self.plan.workers]

    def ready(self, worker: WorkerId) -> frozenset[SliceId]:
        return frozenset() if self.head is None else self.standbys.ready(STEP, worker, self.head.epoch)

    def change(self, owners: Sequence[WorkerId], replicas: Replicas, workers: tuple[Worker, ...] | None = None) -> None:
        self.plan = self.plan.next({STEP: owners}, {STEP: replicas}, workers)

    def replicas(self) -> list[tuple[WorkerId, ...]]:
        return [self.share.replicas_of(s) for s in range(SLICES)]

    def flip(self, slices: Iterable[SliceId], target: WorkerId) -> None:
        """The target owns the slices from now on, and their owners stand by."""
        owners, replicas = list(self.share.owners), self.replicas()
        for number in slices:
            replicas[number] = (owners[number], *(w for w in replicas[number] if w != target))
            owners[number] = target
        self.change(owners, replicas)

    def lose(self, worker: WorkerId) -> None:
        """A worker is gone: who is ready takes over, else who stands by, else anybody."""
        left = tuple(w for w in self.plan.workers if w.id != worker)
        owners, replicas = list(self.share.owners), self.replicas()
        for number, owner in enumerate(owners):
            standing = [w for w in replicas[number] if w != worker]
            if owner == worker:
                able = [w for w in standing if number in self.ready(w)]
                owners[number] = [*able, *standing, left[number % len(left)].id][0]
            replicas[number] = tuple(w for w in standing if w != owners[number])
        self.standbys.lost([worker])
        self.disks.pop(worker, None)
        self.change(owners, replicas, left)

    # Epochs

    def epoch(
        self,
        rows: frozenset[SliceId] = EVERY,
        fold: Callable[[], int] = lambda: 1,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> tuple[str, ...]:
        """Run and commit one; each instance folds some of its newest runs. Returns what was let go."""
        epoch, share = Epoch(len(self.rows)), self.share
        state = OperatorState() if self.head is None else self.head.operators[STEP]
        behind = self.takeovers()
        for takeover in behind:
            self.check(takeover)
            state = state.rebased(takeover.slices, OperatorState(takeover.chain))
        after = state
        for number in range(share.instances):
            after = self._update(after, state, InstanceId(number), behind, epoch, rows, fold())
        self.rows.append(rows)
        backups = self._backups(epoch, rows)
        meanwhile()
        parent, self.head = (
            self.head,
            Manifest("app", epoch, "" if self.head is None else self.head.id, self.plan.version, 1, {STEP: after}),
        )
        for slice_id in EVERY:
            found = [self.contents[run.name][slice_id] for run in after.runs if slice_id in run.slices]
            assert sum(found, ()) == self.truth(slice_id), "the new state has every epoch once"
        moment = Moment(epoch, epoch - 1)
        gone = self.standbys.committed(
            self.head, parent, self.plan, self.served or self.plan, {STEP: Kept(moment, backups)}
        )
        self.kept.append({worker: backup.slices for worker, backup in backups.items()})
        self.parent, self.served = parent, self.plan
        self._collect(gone)
        return gone

    def takeovers(self) -> tuple[Behind, ...]:
        if self.head is None or self.served is None:
            return ()
        before = {SliceId(s): w for s, w in enumerate(self.served.operators[STEP].owners)}
        return self.standbys.takeovers(STEP, self.share, before, self.head.epoch, self.head.operators[STEP])

    def truth(self, slice_id: SliceId) -> Epochs:
        """The epochs that had rows for a slice."""
        return tuple(epoch for epoch, some in enumerate(self.rows) if slice_id in some)

    def _update(
        self,
        after: OperatorState,
        state: OperatorState,
        instance: InstanceId,
        behind: Sequence[Behind],
        epoch: Epoch,
        rows: frozenset[SliceId],
        fold: int,
    ) -> OperatorState:
        worker, mine = self.share.worker_of[instance], frozenset(self.share.slices_of(instance))
        taken = [b for b in behind if b.worker == worker and b.slices & mine]
        current = mine.difference(*(b.slices for b in taken))
        chain = [(run, run.slices & current) for run in state.runs]
        chain += [(run, run.slices & b.slices & mine) for b in taken for run in b.chain]
        chain = [(run, counted) for run, counted in chain if counted]
        for run, counted in chain:
            self._open(worker, run, counted)
        late = {s: self._kept_rows(b, s) for b in taken for s in b.slices & mine}
        if not rows & mine and not any(late.values()):
            return after
        folded = chain[max(0, len(chain) - fold) :]
        name = self._block(RUN, epoch, worker)
        gone: dict[str, frozenset[SliceId]] = defaultdict(frozenset)
        for run, counted in folded:
            gone[run.name] |= counted
        for s in mine:
            old = [self.contents[run.name][s] for run, counted in folded if s in counted]
            self.contents[name][s] = (*sum(old, ()), *late.get(s, ()), *((epoch,) if s in rows else ()))
        self.durable.add(name)
        return after.replaced(gone, BlockRef(name, STEP, epoch, 1, 1, 0, SliceSet.of(mine), worker=worker))

    def _open(self, worker: WorkerId, run: BlockRef, counted: frozenset[SliceId]) -> None:
        """Read a run where it is; who has served its slices before has it on its disk."""
        if all(self._holds(worker, run, s) for s in counted):
            return
        assert self.served is not None
        unmoved = {s for s in counted if self.served.operators[STEP].owners[s] == worker}
        assert all(self._holds(worker, run, s) for s in unmoved), "an owner needs no durable read"
        assert run.name in self.durable
        self.durable_reads += 1
        self.disks[worker].add(run.name)

    def _backups(self, epoch: Epoch, rows: frozenset[SliceId]) -> dict[WorkerId, Backup]:
        found = {}
        for worker in dict.fromkeys(self.share.worker_of):
            standby = self.share.standby(worker)
            block = None
            if rows & standby:
                name = self._block(BACKUP, epoch, worker)
                self.contents[name] = dict.fromkeys(rows & standby, (epoch,))
                block = BlockRef(name, STEP, epoch, 1, 1, 0, worker=worker)
            if standby:
                found[worker] = Backup(standby, block)
        return found

    def _block(self, kind: str, epoch: Epoch, worker: WorkerId) -> str:
        name = f"{STEP}.{epoch}.{kind}.{next(self._names)}"
        self.contents[name] = {}
        self.disks[worker].add(name)
        return name

    def _collect(self, gone: Iterable[str]) -> None:
        """Let go all that may go: what no retained manifest names and nobody pins, and what is handed back."""
        retained = [m for m in (self.parent, self.head) if m is not None]
        kept = set().union(self.standbys.pinned(), *(m.blocks() for m in retained))
        garbage = {*gone, *(self.durable - kept)}
        self.durable &= kept
        for disk in self.disks.values():
            disk -= garbage

    # Peer checkpoints

    def begin(self) -> Checkpoint:
        assert self.head is not None
        self.checkpoint = Checkpoint(self.head, self.plan, self.standbys.copies(self.head, self.plan))
        self.standbys.copying(self.head)
        return self.checkpoint

    def end(self) -> bool:
        """Copy and succeed; give up if a worker that takes part is gone."""
        made = self.checkpoint
        assert made is not None
        if not {w for c in made.copies for w in (c.source, c.target)} <= set(self.workers):
            self.give_up()
            return False
        slices: dict[tuple[str, WorkerId], set[SliceId]] = defaultdict(set)
        runs = {copy.run.name: copy.run for copy in made.copies}
        for copy in made.copies:
            assert copy.source != copy.target
            there = all(self._holds(copy.source, copy.run, s) for s in copy.slices)
            assert there or copy.run.name in self.durable, "what is being copied must stay"
            assert not slices[copy.run.name, copy.target] & copy.slices, "nothing is copied twice"
            slices[copy.run.name, copy.target] |= copy.slices
        parts = []
        for (run, target), some in slices.items():
            name = self._block(PART, runs[run].epoch, target)
            self.contents[name] = {s: self.contents[run][s] for s in some}
            parts.append((run, BlockRef(name, STEP, runs[run].epoch, 1, 1, 0, SliceSet.of(some), worker=target)))
        self.standbys.copied(made.manifest, made.plan, parts)
        self.checkpoint = None
        self._check_supplied(made)
        return True

    def give_up(self) -> None:
        self.standbys.given_up()
        self.checkpoint = None

    def _check_supplied(self, made: Checkpoint) -> None:
        """Who has stood by ever since the checkpoint's epoch is ready."""
        since = self.kept[made.manifest.epoch + 1 :]
        for worker in set(self.workers) & {w.id for w in made.plan.workers}:
            steady = made.plan.operators[STEP].standby(worker)
            for kept in since:
                steady &= kept.get(worker, frozenset())
            assert steady <= self.ready(worker)

    # What must always hold

    def check_ready(self) -> None:
        """Whoever is ready for a slice could take it over now, from its own disk."""
        for worker in self.workers if self.head is not None else ():
            assert self.head is not None
            ready = self.ready(worker)
            owners = [worker if s in ready else owner for s, owner in enumerate(self.share.owners)]
            share = assign(owners, [()] * SLICES, self.plan.workers)
            before = dict.fromkeys(ready, WorkerId("somebody"))
            found = self.standbys.takeovers(STEP, share, before, self.head.epoch, self.head.operators[STEP])
            assert sorted(s for b in found for s in b.slices) == sorted(ready)
            for takeover in found:
                self.check(takeover)

    def check(self, takeover: Behind) -> None:
        """A takeover gives the state after the head, from blocks that are there and stay."""
        assert self.head is not None
        head, worker = self.head.epoch, takeover.worker
        epochs = [moment.watermark_us for moment, _ in takeover.missed]
        assert epochs == list(range(head + 1 - len(epochs), head + 1)), "the missing epochs, in order"
        needed = [run for run in takeover.chain if run.slices & takeover.slices]
        stays = self.standbys.pinned() | self.head.blocks()
        assert {run.name for run in needed} <= stays & self.durable
        for _, block in takeover.missed:
            assert block is None or block.name in self.disks[worker], "a backup must stay"
        for slice_id in takeover.slices:
            runs = [run for run in needed if slice_id in run.slices]
            assert all(self._holds(worker, run, slice_id) for run in runs), "a base must stay"
            base: Epochs = sum((self.contents[run.name][slice_id] for run in runs), ())
            assert all(epoch <= head - len(epochs) for epoch in base), "nothing is replayed twice"
            assert (*base, *self._kept_rows(takeover, slice_id)) == self.truth(slice_id)

    def _kept_rows(self, takeover: Behind, slice_id: SliceId) -> Epochs:
        blocks = [block for _, block in takeover.missed if block is not None]
        return sum((self.contents[block.name].get(slice_id, ()) for block in blocks), ())

    def _holds(self, worker: WorkerId, run: BlockRef, slice_id: SliceId) -> bool:
        """Is a run's slice on the worker's disk, as the block or as a part that the driver knows of?"""
        disk = self.disks[worker]
        parts = self.standbys.parts().get(worker, {}).get(run.name, ())
        return run.name in disk or any(p.name in disk and slice_id in p.slices for p in parts)

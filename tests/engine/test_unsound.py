"""Copies and deposits of damaged blocks, without Spark: nothing bad spreads, and another copy is used."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from springtide import codec
from springtide.blocks import local
from springtide.blocks.block import PART, RUN, BlockRef, checksum, decode
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.local import LocalBlocks
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.engine.ownership.standby import Standbys
from springtide.engine.pool import store_job as depositing
from springtide.engine.pool.store_job import StoreJob
from springtide.engine.worker import copy
from springtide.engine.worker import store as deposit
from springtide.engine.worker import task_context as task
from springtide.engine.worker.copy import Copied, Errand, ReadSlices, WriteParts
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Parts
from springtide.engine.worker.store import Deposit, Stored, StoreRuns
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, InstanceId, PlanVersion, SliceId, WorkerId
from springtide.plan.plan import Plan, assign
from springtide.plan.worker import Worker
from springtide.state.layout import Layout

SLICES = 4
EVERY = frozenset(map(SliceId, range(SLICES)))
LAYOUT = Layout(pa.schema([("k", pa.int64())]), pa.schema([("n", pa.int64())]))
A, B, C = map(WorkerId, "abc")
STEP = "counts"


def rows_of(slices: Iterable[int]) -> pa.Table:
    """State rows of some slices: a slice is the first two bits of the position."""
    where = [(s << 62) + i for s in sorted(slices) for i in range(100)]
    columns = {"$position": where, "k.k": [w % 1000 for w in where], "s.n": [777] * len(where)}
    return pa.table(columns, schema=LAYOUT.schema)


@dataclass
class Place:
    """Workers with a directory each, and the durable store."""

    root: Path
    patch: pytest.MonkeyPatch
    storage: Storage = field(init=False)

    def __post_init__(self) -> None:
        self.storage = Storage(str(self.root / "local"), str(self.root / "durable"), clustered=True)

    def at(self, worker: WorkerId) -> LocalBlocks:
        """What a task on a worker works with."""
        for module in (task, copy, deposit):
            self.patch.setattr(module, "here", lambda: worker)
        self.patch.setattr(copy, "partition", lambda: 0)
        return self.storage.open()

    def run(self, worker: WorkerId, *, durable: bool = False) -> BlockRef:
        return self._write(worker, RUN, EVERY, durable=durable)

    def part(self, worker: WorkerId, slices: frozenset[SliceId] = EVERY) -> BlockRef:
        return self._write(worker, PART, slices, durable=False)

    def _write(self, worker: WorkerId, kind: str, slices: frozenset[SliceId], *, durable: bool) -> BlockRef:
        blocks = self.at(worker)
        ref = blocks.write(
            rows_of(slices),
            operator=STEP,
            epoch=Epoch(3),
            instance=InstanceId(0),
            kind=kind,
            slices=SliceSet.of(slices),
            durable=durable,
        )
        blocks.open(ref)  # It is verified and mapped, as that of a worker that has served epochs from it.
        return ref

    def rot(self, worker: WorkerId, ref: BlockRef) -> None:
        """Flip a bit of a value, as a disk does: the file's times do not change."""
        path = Path(self.storage.local, worker, ref.name)
        before, data = path.stat(), bytearray(path.read_bytes())
        data[data.rindex((777).to_bytes(8, "little"))] ^= 0x80
        with open(path, "r+b") as file:
            file.write(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def durable(self) -> dict[str, pa.Table]:
        directory = self.root / "durable" / "blocks"
        return {path.name: decode(path.read_bytes()) for path in directory.glob("*")} if directory.exists() else {}

    def copied(self, errands: Sequence[Errand], parts: Mapping[WorkerId, Parts] | None = None) -> Copied:
        """The job that copies, its tasks one after the other."""
        sources = tuple(dict.fromkeys(e.source for e in errands))
        targets = tuple(dict.fromkeys(e.target for e in errands))
        read = ReadSlices(tuple(errands), sources, targets, SLICES, self.storage, parts or {})
        cargo: list[pa.RecordBatch] = []
        for number, source in enumerate(sources):
            self.at(source)
            cargo += read([pa.RecordBatch.from_pydict({"id": [number]})])
        return sum(self.written(errands, targets, cargo), Copied())

    def written(
        self, errands: Sequence[Errand], targets: Sequence[WorkerId], cargo: Sequence[pa.RecordBatch]
    ) -> list[Copied]:
        records: list[Copied] = []
        for number, target in enumerate(targets):
            self.at(target)
            mine = [batch for batch in cargo if batch.column("target").to_pylist() == [number]]
            for batch in WriteParts(tuple(errands), self.storage)(mine):
                records += (codec.loads(Copied, text) for text in batch.column("record").to_pylist())
        return records


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(local, "_verified", {})
    return Place(tmp_path, monkeypatch)


def errand(run: BlockRef, source: WorkerId, target: WorkerId) -> Errand:
    return Errand(run, EVERY, source, target, LAYOUT)


class TestCopies:
    def test_a_sound_run_is_copied(self, place: Place) -> None:
        run = place.run(A)
        copied = place.copied([errand(run, A, B)])
        ((name, part),) = copied.written
        assert (name, part.worker, copied.faults) == (run.name, B, ())
        assert place.at(B).open(part) == rows_of(EVERY)

    def test_a_run_that_rotted_is_not_copied_and_its_worker_says_so(self, place: Place) -> None:
        run = place.run(A)
        place.rot(A, run)
        copied = place.copied([errand(run, A, B)])
        assert copied.written == ()
        reasons = [(f.block.name, f.worker, f.reason) for f in copied.faults]
        assert (run.name, A, "local copy has the wrong checksum") in reasons
        assert not list(Path(place.storage.local, B).glob("*.arrow")), "no bad bytes under a good checksum"

    def test_the_durable_copy_is_used_if_there_is_one(self, place: Place) -> None:
        run = place.run(A, durable=True)
        place.rot(A, run)
        copied = place.copied([errand(run, A, B)])
        ((_, part),) = copied.written
        assert place.at(B).open(part) == rows_of(EVERY)
        assert [fault.worker for fault in copied.faults] == [A]

    def test_a_worker_that_has_parts_alone_is_at_no_fault(self, place: Place) -> None:
        run, part = place.run(A), place.part(B)
        copied = place.copied([errand(run, B, C)], {B: {run.name: (part,)}})
        ((_, made),) = copied.written
        assert place.at(C).open(made) == rows_of(EVERY)
        assert copied.faults == ()

    def test_a_part_that_rotted_is_not_copied_either(self, place: Place) -> None:
        run, part = place.run(A), place.part(B)
        place.rot(B, part)
        copied = place.copied([errand(run, B, C)], {B: {run.name: (part,)}})
        assert copied.written == ()
        assert part.name in {fault.block.name for fault in copied.faults}

    def test_rows_that_change_on_their_way_are_not_written(self, place: Place) -> None:
        run = place.run(A)
        one = errand(run, A, B)
        place.at(A)
        (cargo,) = ReadSlices((one,), (A,), (B,), SLICES, place.storage, {})([pa.RecordBatch.from_pydict({"id": [0]})])
        data = bytearray(cargo.column("payload")[0].as_py())
        data[data.rindex((777).to_bytes(8, "little"))] ^= 1
        bad = cargo.set_column(2, "payload", pa.array([bytes(data)]))
        with pytest.raises(BlockCorrupt, match="rows on their way to a copy changed"):
            place.written([one], [B], [bad])

    def test_large_errands_go_in_pieces(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("springtide.engine.worker.parcel.PIECE_BYTES", 1000)
        run = place.run(A)
        one = errand(run, A, B)
        place.at(A)
        read = ReadSlices((one,), (A,), (B,), SLICES, place.storage, {})
        cargo = list(read([pa.RecordBatch.from_pydict({"id": [0]})]))
        assert len(cargo) > 4
        (record,) = place.written([one], [B], cargo[::-1])
        assert place.at(B).open(record.written[0][1]) == rows_of(EVERY)


@dataclass
class Crew:
    """Who makes state durable: as a pool asks its standbys."""

    place: Place
    standbys: Standbys
    plan: Plan
    run: BlockRef
    storage: Storage = field(init=False)
    asked: list[WorkerId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = self.place.storage

    @property
    def state(self) -> "Crew":
        return self

    def deposits(self, states: Mapping[str, OperatorState], stored: object) -> list[Deposit]:
        found = self.standbys.holders(self.run, EVERY, self.plan.operators[STEP], self.plan)
        return [Deposit(self.run, frozenset(slices), worker) for worker, slices in found.items()]

    def unsound(self, faults: Sequence[Fault]) -> bool:
        return self.standbys.unsound(faults)


class Job(StoreJob):
    """The job's tasks, one after the other, here."""

    def _job(self, deposits: Sequence[Deposit]) -> dict[int, Stored]:
        crew: Any = self.pool
        workers = tuple(dict.fromkeys(d.worker for d in deposits))
        store = StoreRuns(tuple(deposits), workers, crew.storage, crew.standbys.parts())
        found: list[Any] = []
        for number, worker in enumerate(workers):
            crew.asked.append(worker)
            crew.place.at(worker)
            for batch in store([pa.RecordBatch.from_pydict({"id": [number]})]):
                found += (codec.loads(tuple[int, Stored], text) for text in batch.column("record").to_pylist())
        return dict(found)


@pytest.fixture
def crew(place: Place) -> Crew:
    """A owns all and wrote a run, and B has a replica of it."""
    run = place.run(A)
    workers = tuple(Worker(w) for w in (A, B, C))
    plan = Plan(PlanVersion(1), SLICES, workers, {STEP: assign([A] * SLICES, [(B,)] * SLICES, workers)})
    standbys = Standbys()
    manifest = Manifest("app", Epoch(3), "", PlanVersion(1), 1, {STEP: OperatorState((run,))})
    standbys.committed(manifest, None, plan, plan, {})
    standbys.copying(manifest)
    standbys.copied(manifest, plan, [(run.name, place.part(B))])
    return Crew(place, standbys, plan, run)


def made_durable(crew: Crew) -> list[Mapping[str, OperatorState]] | None:
    context = SimpleNamespace(setLocalProperty=lambda name, value: None)
    pool: Any = crew
    spark: Any = SimpleNamespace(sparkContext=context)
    return Job(spark, pool)([{STEP: OperatorState((crew.run,))}], set())


class TestDeposits:
    def test_the_worker_that_wrote_a_run_makes_it_durable(self, crew: Crew) -> None:
        assert made_durable(crew) == [{STEP: OperatorState((crew.run,))}]
        assert crew.asked == [A]
        assert crew.place.durable() == {crew.run.name: rows_of(EVERY)}

    def test_if_its_copy_has_rotted_a_replica_is_made_durable(self, crew: Crew) -> None:
        crew.place.rot(A, crew.run)
        made = made_durable(crew)
        assert made is not None
        (ref,) = made[0][STEP].runs
        assert (ref.worker, ref.slices) == (B, EVERY)
        assert crew.asked == [A, B]
        assert crew.place.durable() == {ref.name: rows_of(EVERY)}
        data = (crew.place.root / "durable" / ref.path).read_bytes()
        assert checksum(data) == ref.crc32

    def test_if_no_copy_is_sound_it_is_given_up_and_said(
        self, crew: Crew, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logging.getLogger("springtide"), "propagate", True)
        crew.place.rot(A, crew.run)
        crew.place.rot(B, crew.standbys.parts()[B][crew.run.name][0])
        with caplog.at_level("WARNING", depositing.log.name):
            assert made_durable(crew) is None
        assert crew.place.durable() == {}
        said = " ".join(record.getMessage() for record in caplog.records)
        assert f"block {crew.run.name!r}: local copy has the wrong checksum" in said
        assert "was given up: operator 'counts', slices 0-3: block" in said
        assert "is damaged or missing in every copy" in said

    def test_the_owner_finds_its_state_missing_and_does_not_go_on(self, crew: Crew) -> None:
        crew.place.rot(A, crew.run)
        made_durable(crew)
        assert crew.place.at(A).local(crew.run) is None


class TestStandbys:
    def test_after_a_fault_replicas_are_copied_from_a_replica(self, crew: Crew) -> None:
        fault = Fault(crew.run, A, "local copy has the wrong checksum")
        share = crew.plan.operators[STEP]
        assert set(crew.standbys.holders(crew.run, EVERY, share, crew.plan)) == {A}
        assert crew.standbys.unsound([fault])
        assert set(crew.standbys.holders(crew.run, EVERY, share, crew.plan)) == {B}
        assert not crew.standbys.unsound([fault]), "that is known"

    def test_a_worker_whose_replica_is_damaged_is_supplied_anew(self, crew: Crew) -> None:
        manifest = Manifest("app", Epoch(3), "", PlanVersion(1), 1, {STEP: OperatorState((crew.run,))})
        (part,) = crew.standbys.parts()[B][crew.run.name]
        assert crew.standbys.copies(manifest, crew.plan) == []
        assert crew.standbys.unsound([Fault(part, B, "local copy has the wrong checksum")])
        assert crew.standbys.ready(STEP, B, Epoch(3)) == frozenset()
        (copy,) = crew.standbys.copies(manifest, crew.plan)
        assert (copy.source, copy.target, copy.slices) == (A, B, EVERY)

    def test_a_fault_is_forgotten_with_its_run(self, crew: Crew) -> None:
        crew.standbys.unsound([Fault(crew.run, A, "no local copy")])
        after = Manifest("app", Epoch(4), "", PlanVersion(1), 1, {STEP: OperatorState()})
        crew.standbys.committed(after, None, crew.plan, crew.plan, {})
        crew.standbys.copying(after)
        crew.standbys.copied(after, crew.plan, [])
        crew.standbys.committed(after, None, crew.plan, crew.plan, {})
        assert crew.standbys._unsound == set()

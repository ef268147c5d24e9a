"""The loop: one change at a time, every decision recorded, and whatever fails, the app goes on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from springtide.blocks.store import LocalStore
from springtide.control.adapt.ledger import Ledger, Record, read_ledger
from springtide.control.adapt.loop import Loop, Pace
from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Snapshot, Source
from springtide.migration.errors import Busy
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.guards import Verdict
from springtide.policies.past import Past

A, B = WorkerId("a"), WorkerId("b")


class Lab:
    """An app without Spark: its clock, its snapshots and its migrations are turned by hand."""

    def __init__(self, root: Path) -> None:
        self.now, self.workers, self.lag_s = 1000.0, 1, 0.0
        self.migrations: list[Migration] = []
        self.asked: list[object] = []
        self.refuses: Exception | None = None
        self.decide: Callable[[Snapshot, Past], Verdict] = lambda s, p: Verdict(Hold("calm"), Hold("calm"))
        self.store = LocalStore(root)
        self.ledger = Ledger(self.store, "test", "handover")
        self.loop = Loop(
            self, lambda s, p: self.decide(s, p), self.ledger, Pace(5, 10, 10), "handover", lambda: self.now
        )

    def snapshot(self, window_s: float) -> Snapshot | None:
        ids = (A, B, *map(WorkerId, "cdef"))[: self.workers]
        instances = tuple(Instance("count", n, w, 5.0, 500.0, 50.0, cpu_s=1.0) for n, w in enumerate(ids))
        return Snapshot(
            self.now,
            window_s,
            4,
            (Source("rows", 100.0, 0.0, self.lag_s),),
            (Edge("rows", "count"),),
            instances,
            tuple(MeasuredWorker(w, 1) for w in ids),
        )

    def scale(self, workers: int, strategy: str) -> Migration:
        return self._begin(("scale", workers, strategy))

    def move(self, operator: str, slices: frozenset[SliceId], to: WorkerId, strategy: str) -> Migration:
        return self._begin(("move", operator, slices, to, strategy))

    def pause_of(self, migration: Migration) -> float:
        return 0.25

    def _begin(self, what: object) -> Migration:
        if self.refuses is not None:
            raise self.refuses
        self.asked.append(what)
        self.migrations.append(Migration(len(self.asked), "handover", str(what), began_at=self.now))
        return self.migrations[-1]

    def wants(self, decision: Decision, *vetoes: str) -> None:
        done = Hold("vetoed") if vetoes else decision
        self.decide = lambda s, p: Verdict(decision, done, vetoes)

    def turn(self, seconds: float = 5.0) -> None:
        self.now += seconds
        self.loop.step()

    def records(self) -> list[Record]:
        return read_ledger(self.store)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_change_is_recorded_from_its_reason_to_its_effect(lab: Lab) -> None:
    lab.lag_s = 20.0
    lab.wants(Scale(3, "too slow"))
    lab.turn()
    assert lab.asked == [("scale", 3, "handover")]
    lab.turn()
    assert len(lab.asked) == 1, "one change at a time"
    lab.workers, lab.lag_s = 3, 1.0
    lab.migrations[0].end(MigrationState.DONE)
    lab.migrations[0].ended_at = lab.now
    lab.wants(Hold("calm"))
    lab.turn()
    (record,) = lab.records()
    assert (record.entry.outcome, record.entry.pause_s, record.entry.helped) == ("done", 0.25, None)
    assert record.entry.decision == Scale(3, "too slow")
    assert record.seen["operators"]["count"]["instances"] == 1
    lab.turn()
    (record,) = lab.records()
    assert record.entry.helped is True
    assert record.entry.gauge is not None
    assert record.entry.after is not None
    assert (record.entry.gauge.lag_s, record.entry.after.lag_s) == (20.0, 1.0)


def test_a_change_that_did_not_help_is_told_so(lab: Lab) -> None:
    lab.lag_s = 20.0
    lab.wants(Scale(2, "too slow"))
    lab.turn()
    lab.migrations[0].end(MigrationState.DONE)
    lab.migrations[0].ended_at = lab.now
    lab.wants(Hold("calm"))
    lab.turn(5)
    lab.turn(10)
    assert lab.records()[0].entry.helped is False


def test_workers_that_never_come(lab: Lab) -> None:
    lab.wants(Scale(9, "too slow"))
    lab.turn()
    lab.migrations[0].end(MigrationState.FAILED, "asked the cluster for 9 workers, got 2")
    lab.wants(Hold("calm"))
    lab.turn()
    entry = lab.records()[0].entry
    assert entry.outcome == "failed: asked the cluster for 9 workers, got 2"
    assert entry.helped is False
    assert lab.ledger.past[0].helped is False, "policies see it"


def test_a_refusal_is_an_outcome(lab: Lab) -> None:
    lab.refuses = Busy("migration 7 is under way")
    lab.wants(Rebalance("count", frozenset({SliceId(1)}), A, B, "hot"))
    lab.turn()
    assert lab.records()[0].entry.outcome == "refused: migration 7 is under way"
    lab.refuses = None
    lab.turn()
    assert lab.asked == [("move", "count", frozenset({1}), B, "handover")]


def test_a_veto_is_told_once_until_it_changes(lab: Lab) -> None:
    for seconds in range(3):
        lab.wants(Scale(3, "too slow"), f"settles for {seconds} s")
        lab.turn()
    lab.wants(Scale(4, "too slow"), "settles for 3 s")
    lab.turn()
    assert [(r.entry.vetoes, r.entry.wanted) for r in lab.records()] == [
        (("settles for 0 s",), Scale(3, "too slow")),
        (("settles for 3 s",), Scale(4, "too slow")),
    ]
    assert len(lab.ledger.past) == 4, "policies look back on all of them"
    assert lab.asked == []


def test_a_snapshot_that_can_not_be_used_is_told(lab: Lab) -> None:
    lab.decide = lambda s, p: Verdict(Hold("no number", warning=True), Hold("no number", warning=True))
    lab.turn()
    lab.turn()
    assert [r.entry.decision for r in lab.records()] == [Hold("no number", warning=True)]


def test_a_policy_that_fails_is_recorded_and_the_loop_goes_on(lab: Lab) -> None:
    def broken(snapshot: Snapshot, past: Past) -> Verdict:
        raise ZeroDivisionError("a mistake")

    lab.decide = broken
    loop = lab.loop
    loop.pace = replace(loop.pace, interval_s=0.01)
    loop.start()
    for _ in range(500):
        if lab.records():
            break
        loop._stopped.wait(0.01)
    loop.stop()
    (record,) = lab.records()
    assert "ZeroDivisionError: a mistake" in record.entry.decision.reason


def test_before_the_first_epochs_nothing_is_decided(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "snapshot", lambda window_s: None)
    lab.turn()
    assert lab.ledger.past == ()

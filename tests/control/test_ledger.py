"""The ledger: what is recorded is read back, and what is learnt later is added."""

from pathlib import Path

from springtide.blocks.store import LocalStore
from springtide.control.adapt.ledger import CHUNK, Ledger, read_ledger
from springtide.control.json_lines import KEPT
from springtide.ids import SliceId, WorkerId
from springtide.policies.decision import Hold, Rebalance, Scale
from springtide.policies.past import AppState, Entry

GAUGE = AppState(2, 100.0, 150.0, 3.0, 40.0, 1.2, 0.5)
MOVE = Rebalance("count", frozenset({SliceId(3), SliceId(1)}), WorkerId("1"), WorkerId("2"), "it is hot")
ENTRIES = [
    Entry(1, 10.0, Scale(4, "too slow", {"count": 4}), Scale(4, "too slow", {"count": 4}), gauge=GAUGE),
    Entry(2, 20.0, Scale(1, "idle"), Hold("in the band"), ("scale-down waits for 60 s",)),
    Entry(3, 30.0, MOVE, MOVE),
]


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    ledger = Ledger(store, "ds2", "progressive")
    for entry in ENTRIES:
        ledger.add(entry, {"epochs": entry.number})
    found = read_ledger(store)
    assert [record.entry for record in found] == ENTRIES
    assert [(r.policy, r.strategy, r.seen["epochs"]) for r in found][1] == ("ds2", "progressive", 2)
    assert ledger.past == tuple(ENTRIES)


def test_what_is_learnt_later_is_added(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    ledger = Ledger(store)
    ledger.add(ENTRIES[0], {})
    ledger.update(1, {"copying": 8.5}, ended_at=22.0, outcome="done", pause_s=0.3)
    ledger.update(1, after=GAUGE, helped=True)
    (record,) = read_ledger(store)
    assert (record.entry.outcome, record.entry.pause_s, record.entry.helped) == ("done", 0.3, True)
    assert record.phases == {"copying": 8.5}
    assert ledger.past == (record.entry,)


def test_a_later_driver_goes_on_with_the_numbers(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first = Ledger(store)
    for number in range(1, CHUNK + 3):
        first.add(Entry(number, float(number), Hold("calm"), Hold("calm"), ("why",)), {})
    second = Ledger(store)
    assert second.next == CHUNK + 3
    assert len(second.past) == CHUNK + 2
    second.add(Entry(second.next, 99.0, Hold("calm"), Hold("calm")), {})
    assert [r.entry.number for r in read_ledger(store)] == list(range(1, CHUNK + 4))


def test_old_entries_make_room(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    ledger = Ledger(store)
    last = CHUNK * (KEPT + 3)
    for number in range(1, last + 1, CHUNK):
        ledger.add(Entry(number, float(number), Hold("calm"), Hold("calm"), ("why",)), {})
    kept = [record.entry.number for record in read_ledger(store)]
    assert len(store.list("ledger")) == KEPT
    assert kept[-1] == ledger.past[-1].number
    assert sorted(ledger._records) == kept, "in memory as in the store"
    ledger.update(kept[-1], outcome="done")
    assert read_ledger(store)[-1].entry.outcome == "done"


def test_what_is_not_kept_is_still_looked_back_on(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    ledger = Ledger(store)
    ledger.add(ENTRIES[1], {}, keep=False)
    assert ledger.past == (ENTRIES[1],)
    assert read_ledger(store) == []

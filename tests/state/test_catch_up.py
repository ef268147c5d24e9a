"""Catching up: an older state and the rows of the epochs since give what updating epoch by epoch gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Farm, Row, frozen, good_hash, multiset

from springtide.blocks.manifest import OperatorState
from springtide.ids import SliceId
from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.chain import Chain
from springtide.state.dedupe import DedupeLogic, Within
from springtide.state.layout import KEY as KEY_PREFIX
from springtide.state.layout import STATE as STATE_PREFIX
from springtide.state.logic import Logic, Moment
from springtide.state.per_key import PerKey
from springtide.state.reduce import ReduceLogic
from springtide.state.run import Run, merge
from springtide.state.update import CaughtUp, Missed, Updated, catch_up, update
from springtide.state.window import Window

SLICES = 4
TIME = pa.timestamp("us", "UTC")
KEY = pa.schema([("k", pa.string())])
ROWS = pa.schema([("k", pa.string()), ("t", TIME), ("v", pa.int64())])
STATE = pa.schema([("n", pa.int64())])
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int64())])


def at(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)


def running_total(key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, list[Row]]:
    """A sum that a value of 0 ends: the key is forgotten, and starts anew."""
    total: int | None = None if state is None else state["n"]
    for row in rows:
        total = None if row["v"] == 0 else (total or 0) + row["v"]
    return (None if total is None else {"n": total}), [{"k": key["k"], "n": total}]


LOGICS: Mapping[str, Logic] = {
    "count": AggregateLogic(KEY, ROWS, {"n": agg.count()}, SLICES),
    "sum": AggregateLogic(KEY, ROWS, {"total": agg.sum("v")}, SLICES),
    "dedupe": DedupeLogic(KEY, ROWS),
    "dedupe within": DedupeLogic(KEY, ROWS, Within("t", 15)),
    "windows": AggregateLogic(KEY, ROWS, {"n": agg.count(), "top": agg.max("v")}, SLICES, Window("t", 10, 5, 3)),
    "drops": ReduceLogic(KEY, ROWS, PerKey(running_total, STATE, OUTPUT), STATE, OUTPUT),
}


@dataclass
class History:
    """Epochs run one by one, with all that somebody who stands by would have kept of them."""

    farm: Farm
    states: list[OperatorState] = field(default_factory=lambda: [OperatorState()])
    """Before the first epoch, and after each."""
    moments: list[Moment] = field(default_factory=list)
    parcels: list[list[pa.Table]] = field(default_factory=list)

    def epoch(self, rows: Sequence[Row]) -> None:
        """One epoch, its rows in two partitions."""
        parts = [rows[::2], rows[1::2]]
        self.farm.epoch(*parts)
        self.states.append(self.farm.state)
        self.moments.append(self.farm.moment)
        self.parcels.append([self.farm._arrive(part).rows for part in parts if part])

    def chain(self, epochs: int, slices: frozenset[SliceId]) -> Chain:
        """The state of some slices after the first epochs."""
        return self.farm._chain(slices, self.states[epochs])

    def rows(self, epoch: int, slices: frozenset[SliceId]) -> list[pa.Table]:
        return [self.farm._share(parcel, slices) for parcel in self.parcels[epoch]]

    def missed(self, epochs: int, slices: frozenset[SliceId]) -> list[Missed]:
        """What the state after the first epochs lacks before the last one."""
        last = len(self.moments) - 1
        return [(self.moments[e], self.rows(e, slices)) for e in range(epochs, last)]


def contents(chain: Chain, updated: Updated) -> dict[Any, Any]:
    """Key to state, after an update."""
    kept = chain.runs[: len(chain.runs) - len(updated.replaced)]
    assert updated.replaced == chain.runs[len(kept) :], "what is replaced is stored, and newest"
    runs = [*kept, *([] if updated.run is None else [Run(updated.run, chain.layout, SLICES)])]
    rows = merge(runs, whole=True).to_pylist() if runs else []
    keys = [tuple(frozen(v) for n, v in row.items() if n.startswith(KEY_PREFIX)) for row in rows]
    states = [tuple(frozen(v) for n, v in row.items() if n.startswith(STATE_PREFIX)) for row in rows]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, states, strict=True))


def check(history: History, behind: Mapping[int, frozenset[SliceId]]) -> Updated:
    """The last epoch of all slices, some of them caught up from the state after the first epochs."""
    logic, last = history.farm.logic, len(history.moments) - 1
    everything = frozenset(map(SliceId, range(SLICES)))
    rows, moment = history.rows(last, everything), history.moments[last]
    direct_chain = history.chain(last, everything)
    direct = update(logic, direct_chain, rows, moment)

    current = everything.difference(*behind.values())
    older = [(history.chain(c, slices), history.missed(c, slices)) for c, slices in behind.items() if slices]
    caught = [catch_up(logic, chain, missed) for chain, missed in older]
    loose = [found.run for found in caught if found.run is not None]
    chain = Chain([*history.chain(last, current).runs, *(run for old, _ in older for run in old.runs)], logic.layout)
    caught_up = update(logic, chain, rows, moment, loose=loose)

    assert contents(chain, caught_up) == contents(direct_chain, direct)
    assert multiset(caught_up.output.to_pylist()) == multiset(direct.output.to_pylist())
    assert (caught_up.keys_added, caught_up.keys_removed) == (direct.keys_added, direct.keys_removed)
    for (c, slices), found in zip(((c, s) for c, s in behind.items() if s), caught, strict=True):
        check_missed(history, c, slices, found)
    return caught_up


def check_missed(history: History, epochs: int, slices: frozenset[SliceId], found: CaughtUp) -> None:
    """The output and the balance of each missed epoch are those it had when it was not missed."""
    last = len(history.moments) - 1
    direct = [
        update(history.farm.logic, history.chain(e, slices), history.rows(e, slices), history.moments[e])
        for e in range(epochs, last)
    ]
    outputs = [multiset(one.output.to_pylist()) for one in direct]
    assert [multiset(output.to_pylist()) for output in found.output] == outputs
    assert found.keys_added == sum(one.keys_added for one in direct)
    assert found.keys_removed == sum(one.keys_removed for one in direct)


times = st.one_of(st.none(), st.integers(-12, 12))
rows = st.tuples(st.sampled_from(["a", "b", "c", "d", "ä", None]), times, st.integers(0, 3))
epochs = st.lists(st.lists(rows, max_size=6), min_size=1, max_size=6)
owners = st.lists(st.integers(0, 1), min_size=SLICES, max_size=SLICES)


@pytest.mark.parametrize("name", sorted(LOGICS))
@settings(max_examples=40, deadline=None)
@given(data=st.data(), drawn=epochs, hash_of=st.sampled_from(list(HASHES.values())))
def test_catching_up_equals_updating_epoch_by_epoch(name: str, data: st.DataObject, drawn: Any, hash_of: Any) -> None:
    """Slices that are up to date, and others from two older states, in one update."""
    history = History(Farm(LOGICS[name], ROWS, hash_of, SLICES, data.draw(owners)))
    for number, epoch in enumerate(drawn):
        history.farm.owner = data.draw(owners)
        history.epoch([{"k": k, "t": None if t is None else at(8 * number + t), "v": v} for k, t, v in epoch])
    first, second = (data.draw(st.integers(0, len(drawn) - 1)) for _ in range(2))
    group_of = data.draw(st.lists(st.integers(0, 2), min_size=SLICES, max_size=SLICES))
    behind: dict[int, frozenset[SliceId]] = {first: frozenset(), second: frozenset()}
    for number, group in enumerate(group_of):
        if group:
            behind[(first, second)[group - 1]] |= {SliceId(number)}
    check(history, behind)


def some(name: str, *epochs: Sequence[tuple[str, int, int]]) -> History:
    history = History(Farm(LOGICS[name], ROWS, good_hash, SLICES))
    for epoch in epochs:
        history.epoch([{"k": k, "t": at(t), "v": v} for k, t, v in epoch])
    return history


ALL = frozenset(map(SliceId, range(SLICES)))


@pytest.mark.parametrize("name", sorted(LOGICS))
def test_what_was_caught_up_is_stored_even_if_the_last_epoch_has_no_rows(name: str) -> None:
    history = some(name, [("a", 1, 1)], [("b", 2, 2), ("a", 2, 1)], [])
    caught_up = check(history, {1: ALL})
    assert caught_up.run is not None
    assert set(caught_up.run.column("k.k").to_pylist()) >= {"b"}
    assert (caught_up.keys_added, caught_up.keys_removed) == (0, 0), "they were counted in their own epochs"


@pytest.mark.parametrize("name", sorted(LOGICS))
def test_missed_epochs_without_rows_leave_nothing_to_catch_up(name: str) -> None:
    history = some(name, [("a", 1, 1)], [], [], [("a", 2, 1), ("b", 2, 1)])
    chain = history.chain(1, ALL)
    assert catch_up(history.farm.logic, chain, history.missed(1, ALL)).run is None
    check(history, {1: ALL})


@pytest.mark.parametrize("name", sorted(LOGICS))
def test_nothing_missed_and_nothing_new_writes_nothing(name: str) -> None:
    history = some(name, [("a", 1, 1)], [], [])
    assert check(history, {1: ALL}).run is None


@pytest.mark.parametrize("name", sorted(LOGICS))
def test_a_slice_without_any_state_catches_up_from_nothing(name: str) -> None:
    check(some(name, [("a", 1, 1)], [("b", 2, 0), ("a", 2, 1)], [("a", 3, 2)]), {0: ALL})


def test_a_window_that_closed_in_a_missed_epoch_stays_closed() -> None:
    """Its tombstone hides it in the runs below, which are too large to be rewritten."""
    many = [(f"key {i}", 1, 1) for i in range(60)]
    history = some("windows", [*many, ("a", -9, 1)], [("b", 5, 1)], [], [("b", 5, 1)])
    assert ("a",) in {key[:1] for key in contents(history.chain(1, ALL), Updated(None, (), pa.table({}), 0, 0))}
    caught_up = check(history, {1: ALL})
    assert not caught_up.replaced
    assert caught_up.run is not None
    assert caught_up.run.filter(caught_up.run.column("$dead")).column("k.k").to_pylist() == ["a", "a"]
    assert "a" not in caught_up.output.column("k").to_pylist(), "it was published when it closed"


def test_a_key_that_was_dropped_in_a_missed_epoch_starts_anew() -> None:
    caught_up = check(some("drops", [("a", 0, 3)], [("a", 0, 0)], [("a", 0, 2)]), {1: ALL})
    assert caught_up.output.to_pylist() == [{"k": "a", "n": 2}]
    assert caught_up.keys_added == 1


def test_a_row_that_passed_in_a_missed_epoch_does_not_pass_again() -> None:
    assert check(some("dedupe", [], [("a", 0, 1)], [("a", 0, 2)]), {0: ALL}).output.num_rows == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=5), st.integers(0, 12), st.data())
def test_a_fold_replaces_at_least_so_many_runs_and_keeps_the_state(
    sizes: list[int], changes: int, data: st.DataObject
) -> None:
    layout = LOGICS["count"].layout
    tables = [
        pa.table(
            {"$position": pa.array(range(n), pa.uint64()), "k.k": [str(i) for i in range(n)], "s.n.0": [number] * n},
            schema=layout.schema,
        )
        for number, n in enumerate([*sizes, changes])
    ]
    chain = Chain([Run(table, layout, SLICES) for table in tables[:-1]], layout)
    least = data.draw(st.integers(0, len(sizes)))
    run, replaced = chain.fold(tables[-1], least)
    assert len(replaced) >= least
    kept = chain.runs[: len(sizes) - len(replaced)]
    assert replaced == chain.runs[len(kept) :]
    after = merge([*kept, Run(run, layout, SLICES)], whole=True)
    assert after.equals(merge([Run(table, layout, SLICES) for table in tables], whole=True))

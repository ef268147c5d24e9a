"""The slice store against a plain dict: any keys, any hashes, any epochs, slices that come and go."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from state_kit import HASHES, Canon, Farm, Row, canon_row, multiset

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.logic import Groups, Logic
from springtide.state.per_key import PerKey
from springtide.state.reduce import Reduced, ReduceLogic

SLICES = 4
NAN = float("nan")
KEYS: dict[str, tuple[pa.Schema, list[tuple[Any, ...]]]] = {
    "strings": (
        pa.schema([("k", pa.string())]),
        [(None,), ("",), ("a",), ("b",), ("ab",), ("ä",), ("日本",), ("🌊",), ("a\x00",), ("NaN",), ("x" * 5000,)],
    ),
    "floats": (
        pa.schema([("k", pa.float64())]),
        [(None,), (0.0,), (-0.0,), (NAN,), (-NAN,), (1.5,), (-1.5,), (float("inf"),), (float("-inf"),), (5e-324,)],
    ),
    "ints": (
        pa.schema([("k", pa.int64())]),
        [(None,), (2**63 - 1,), (-(2**63),), *((n,) for n in range(-10, 20))],
    ),
    "narrow": (
        pa.schema([("k", pa.float32()), ("n", pa.int8())]),
        [(None, None), (None, 0), (0.0, None), (-0.0, None), (NAN, 1), (NAN, 2), (0.0, 0), (-0.0, 0), (2.0, -128)],
    ),
    "mixed": (
        pa.schema([("k", pa.string()), ("b", pa.bool_()), ("t", pa.timestamp("us", "UTC"))]),
        [
            (None, None, None),
            ("", None, None),
            (None, False, None),
            ("", False, datetime(1969, 12, 31, tzinfo=UTC)),
            ("", True, datetime(1969, 12, 31, tzinfo=UTC)),
            ("a", True, None),
            ("a", True, datetime(2262, 1, 1, tzinfo=UTC)),
        ],
    ),
    "exact": (
        pa.schema([("k", pa.decimal128(10, 2)), ("d", pa.date32()), ("x", pa.binary())]),
        [
            (None, None, None),
            (Decimal("0.00"), date(1970, 1, 1), b""),
            (Decimal("0.00"), None, b"\x00"),
            (Decimal("-1.50"), date(1, 1, 1), b"\xff"),
            (Decimal("1.50"), date(9999, 12, 31), None),
        ],
    ),
}

keys_and_values = st.tuples(st.integers(0, 32), st.one_of(st.none(), st.integers(-5, 5)))
arrivals = st.lists(st.lists(keys_and_values, max_size=8), max_size=3)


class SliceStore(RuleBasedStateMachine):
    """What both machines share: a farm of instances, and the dict it has to agree with."""

    farm: Farm | None = None

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Logic:
        raise NotImplementedError

    def step(self, old: Row | None, values: list[int | None]) -> tuple[Row | None, Row]:
        """A key's state after an epoch that brings these values, None to forget it; and the output."""
        raise NotImplementedError

    @initialize(
        kind=st.sampled_from(sorted(KEYS)),
        hashes=st.sampled_from(sorted(HASHES)),
        form=st.sampled_from(["per key", "vectorised"]),
    )
    def start(self, kind: str, hashes: str, form: str) -> None:
        key, self.pool = KEYS[kind]
        self.names = key.names
        rows = key.append(pa.field("v", pa.int64()))
        self.farm = Farm(self.logic(key, rows, form), rows, HASHES[hashes], SLICES)
        self.model: dict[Canon, Row] = {}

    @rule()
    def a_row_of_every_key(self) -> None:
        """A run that is large beside what the next epochs change, so that it is not merged with it."""
        self.epoch([[(i, 1) for i in range(len(self.pool))]])

    @rule(row=keys_and_values)
    def a_single_row(self, row: tuple[int, int | None]) -> None:
        self.epoch([[row]])

    @rule(parts=arrivals)
    def epoch(self, parts: list[list[tuple[int, int | None]]]) -> None:
        assert self.farm is not None
        batches = [[self.row(i, v) for i, v in part] for part in parts]
        touched: dict[Canon, list[int | None]] = {}
        for row in (row for batch in batches for row in batch):
            touched.setdefault(canon_row(row, self.names), []).append(row["v"])
        expected = []
        for key, values in touched.items():
            after, output = self.step(self.model.pop(key, None), values)
            if after is not None:
                self.model[key] = after
            expected.append(self.named(key) | output)
        assert multiset(self.farm.epoch(*batches).output) == multiset(expected)

    @rule(owner=st.lists(st.integers(0, 2), min_size=SLICES, max_size=SLICES))
    def replan(self, owner: list[int]) -> None:
        """Slices change hands: some go away and come back later."""
        assert self.farm is not None
        self.farm.owner = owner

    @rule(slice_=st.integers(0, SLICES - 1), instance=st.integers(0, 3))
    def move_one(self, slice_: int, instance: int) -> None:
        assert self.farm is not None
        self.farm.owner[slice_] = instance

    @invariant()
    def the_store_holds_what_the_dict_holds(self) -> None:
        if self.farm is not None:
            expected = [self.named(key) | state for key, state in self.model.items()]
            assert multiset(self.farm.stored()) == multiset(expected)
            assert self.farm.keys == len(self.model)

    @rule()
    def look_up_every_key(self) -> None:
        assert self.farm is not None
        rows = [self.row(i, 0) for i in range(len(self.pool))]
        expected = [self.model.get(canon_row(row, self.names)) for row in rows]
        assert self.farm.look_up(rows) == expected

    def row(self, index: int, value: int | None) -> Row:
        return {**self.named(self.pool[index % len(self.pool)]), "v": value}

    def named(self, key: Canon) -> Row:
        return dict(zip(self.names, key, strict=True))


class AggregateStore(SliceStore):
    """Count and sum; nothing is ever deleted."""

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Logic:
        return AggregateLogic(key, rows, {"n": agg.count(), "total": agg.sum("v")}, SLICES)

    def step(self, old: Row | None, values: list[int | None]) -> tuple[Row | None, Row]:
        n, total = (0, None) if old is None else (old["n.0"], old["total.0"])
        numbers = [v for v in [total, *values] if v is not None]
        n, total = n + len(values), sum(numbers) if numbers else None
        return {"n.0": n, "total.0": total}, {"n": n, "total": total}


REDUCER_STATE = pa.schema([("total", pa.int64()), ("last_rows", pa.int64())])


def keep_positive(key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, list[Row]]:
    """Adds up; a null, or a total below zero, forgets the key."""
    values = [r["v"] for r in rows]
    total = (0 if state is None else state["total"]) + sum(v for v in values if v is not None)
    gone = None in values or total < 0
    after = None if gone else {"total": total, "last_rows": len(rows)}
    return after, [{**key, "total": None if gone else total, "rows": len(rows)}]


def keep_positive_vectorised(groups: Groups) -> Reduced:
    values = groups.rows.column("v")
    total = np.add.reduceat(values.fill_null(0).to_numpy(), groups.starts)
    nulls = np.add.reduceat(values.is_null().to_numpy().astype(np.int64), groups.starts)
    total = total + groups.state.column("total").fill_null(0).to_numpy()
    keep = (nulls == 0) & (total >= 0)
    sizes = pa.array(np.bincount(groups.group_of_row))
    output = groups.keys.append_column("total", pa.array(total, mask=~keep)).append_column("rows", sizes)
    return Reduced(pa.table({"total": total, "last_rows": sizes}), output, keep)


class ReduceStore(SliceStore):
    """A reducer that forgets keys, in its per-key and in its vectorised form."""

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Logic:
        output = pa.schema([*key, ("total", pa.int64()), ("rows", pa.int64())])
        reducer = PerKey(keep_positive, REDUCER_STATE, output) if form == "per key" else keep_positive_vectorised
        return ReduceLogic(key, rows, reducer, REDUCER_STATE, output)

    def step(self, old: Row | None, values: list[int | None]) -> tuple[Row | None, Row]:
        after, (output,) = keep_positive({}, [{"v": v} for v in values], old)
        return after, output


TestAggregateStore = AggregateStore.TestCase
TestAggregateStore.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


TestReduceStore = ReduceStore.TestCase
TestReduceStore.settings = settings(max_examples=90, stateful_step_count=15, deadline=None)


COUNT_KEY = pa.schema([("k", pa.int64())])
COUNT_ROWS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def forgetful() -> ReduceLogic:
    output = pa.schema([("k", pa.int64()), ("total", pa.int64()), ("rows", pa.int64())])
    return ReduceLogic(COUNT_KEY, COUNT_ROWS, PerKey(keep_positive, REDUCER_STATE, output), REDUCER_STATE, output)


def test_a_slice_that_comes_back_does_not_resurrect_what_was_deleted_elsewhere() -> None:
    farm = Farm(forgetful(), COUNT_ROWS, lambda key: 0, slices=2, owner=[0, 0])
    farm.epoch([{"k": i, "v": 1} for i in range(10)])
    farm.owner = [1, 0]
    farm.epoch([{"k": i, "v": None} for i in range(10)])
    assert farm.stored() == []
    farm.owner = [0, 0]
    assert farm.stored() == []
    assert farm.look_up([{"k": 3, "v": 0}]) == [None]
    farm.epoch([{"k": 3, "v": 2}])
    assert farm.stored() == [{"k": 3, "total": 2, "last_rows": 1}]


def test_a_tombstone_hides_an_older_run_until_both_are_merged() -> None:
    farm = Farm(forgetful(), COUNT_ROWS)
    farm.epoch([{"k": i, "v": 1} for i in range(100)])
    farm.epoch([{"k": 7, "v": None}])
    assert len(farm.runs) > 1, "one change does not rewrite a hundred rows"
    assert farm.look_up([{"k": 7, "v": 0}, {"k": 8, "v": 0}]) == [None, {"total": 1, "last_rows": 1}]
    farm.epoch([{"k": i, "v": None} for i in range(100)])
    assert farm.runs == (), "what is deleted takes no space once nothing older exists"
    assert farm.keys == 0


def test_tombstones_that_are_merged_above_an_older_run_still_hide_it() -> None:
    farm = Farm(forgetful(), COUNT_ROWS)
    farm.epoch([{"k": i, "v": 1} for i in range(100)])
    for key in (7, 8, 9):
        farm.epoch([{"k": key, "v": None}])
    assert [ref.rows for ref in farm.runs] == [100, 3], "three epochs' tombstones are one run, the base is untouched"
    assert farm.look_up([{"k": key, "v": 0} for key in (7, 8, 9)]) == [None, None, None]
    assert len(farm.stored()) == farm.keys == 97


def test_deleting_a_key_that_was_never_stored_writes_nothing() -> None:
    farm = Farm(forgetful(), COUNT_ROWS)
    result = farm.epoch([{"k": 1, "v": None}])
    assert (farm.runs, farm.keys, result.rewritten) == ((), 0, 0)
    assert result.output == [{"k": 1, "total": None, "rows": 1}]
    farm.epoch([{"k": i, "v": 1} for i in range(100, 200)])
    before = farm.runs
    assert farm.epoch([{"k": 1, "v": None}]).rewritten == 0, "not even a tombstone"
    assert (farm.runs, farm.keys) == (before, 100)


def test_a_megabyte_key_is_a_key_like_any_other() -> None:
    key, rows = pa.schema([("k", pa.string())]), pa.schema([("k", pa.string()), ("v", pa.int64())])
    logic = AggregateLogic(key, rows, {"n": agg.count()}, SLICES)
    farm = Farm(logic, rows, HASHES["same"], SLICES)
    long, other = "ü" * 500_000, "ü" * 499_999 + "u"
    for _ in range(2):
        farm.epoch([{"k": long, "v": 1}, {"k": other, "v": 1}], [{"k": long, "v": 1}])
    assert multiset(farm.stored()) == multiset([{"k": long, "n.0": 4}, {"k": other, "n.0": 2}])


def test_an_epoch_without_rows_changes_nothing() -> None:
    farm = Farm(forgetful(), COUNT_ROWS)
    farm.epoch([{"k": 1, "v": 1}])
    before = farm.runs
    result = farm.epoch()
    assert (result.output, result.rewritten, farm.runs) == ([], 0, before)


def test_replaying_an_epoch_gives_the_same_bytes() -> None:
    """Version e-1 plus the same rows is version e: a replay writes what the lost attempt wrote."""
    rows = [{"k": i % 17, "v": i} for i in range(200)]

    def twice() -> list[bytes]:
        farm = Farm(forgetful(), COUNT_ROWS)
        farm.epoch(rows[:100])
        farm.epoch(rows[100:150], rows[150:])
        return [farm.blocks[ref.name].to_pybytes() for ref in farm.runs]

    assert twice() == twice()


@pytest.mark.parametrize("kind", sorted(KEYS))
@pytest.mark.parametrize("hashes", sorted(HASHES))
def test_every_key_of_every_pool_is_found_again(kind: str, hashes: str) -> None:
    key, pool = KEYS[kind]
    rows = key.append(pa.field("v", pa.int64()))
    farm = Farm(AggregateLogic(key, rows, {"n": agg.count()}, SLICES), rows, HASHES[hashes], SLICES)
    batch = [{**dict(zip(key.names, k, strict=True)), "v": 1} for k in pool]
    expected: dict[Canon, int] = {}
    for row in batch:
        expected[canon_row(row, key.names)] = expected.get(canon_row(row, key.names), 0) + 1
    farm.epoch(batch)
    farm.epoch(batch)
    assert farm.look_up(batch) == [{"n.0": 2 * expected[canon_row(row, key.names)]} for row in batch]
    assert farm.keys == len(expected)


def test_a_key_nobody_stored_is_not_found_even_where_it_collides() -> None:
    farm = Farm(AggregateLogic(COUNT_KEY, COUNT_ROWS, {"n": agg.count()}, SLICES), COUNT_ROWS, HASHES["same"], SLICES)
    assert farm.look_up([{"k": 1, "v": 0}]) == [None]
    farm.epoch([{"k": i, "v": 1} for i in (1, 2, 4)])
    assert farm.look_up([{"k": i, "v": 0} for i in (0, 3, 5, None)]) == [None] * 4
    assert farm.look_up([{"k": 2, "v": 0}]) == [{"n.0": 1}]

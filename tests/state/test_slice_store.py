"""The slice store against a plain dict: any keys, any hashes, any epochs, slices that come and go."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from state_kit import HASHES, Farm, Row, canon_row, good_hash, multiset

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.chain import Chain
from springtide.state.logic import Groups
from springtide.state.reduce import PerKey, Reduced, ReduceLogic

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
        [(None,), (0,), (1,), (-1,), (2**63 - 1,), (-(2**63),), (7,), (8,)],
    ),
    "narrow": (
        pa.schema([("k", pa.float32()), ("n", pa.int8())]),
        [(None, None), (None, 0), (0.0, None), (-0.0, None), (NAN, 1), (NAN, 2), (0.0, 0), (-0.0, 0), (2.0, -128)],
    ),
    "mixed": (
        pa.schema([("k", pa.string()), ("b", pa.bool_()), ("t", pa.timestamp("us", "UTC"))]),
        [
            (None, None, None), ("", None, None), (None, False, None), ("", False, datetime(1969, 12, 31, tzinfo=UTC)),
            ("", True, datetime(1969, 12, 31, tzinfo=UTC)), ("a", True, None), ("a", True, datetime(2262, 1, 1, tzinfo=UTC)),
        ],
    ),
    "exact": (
        pa.schema([("k", pa.decimal128(10, 2)), ("d", pa.date32()), ("x", pa.binary())]),
        [
            (None, None, None), (Decimal("0.00"), date(1970, 1, 1), b""), (Decimal("0.00"), None, b"\x00"),
            (Decimal("-1.50"), date(1, 1, 1), b"\xff"), (Decimal("1.50"), date(9999, 12, 31), None),
        ],
    ),
}  # fmt: skip

keys_and_values = st.tuples(st.integers(0, 10), st.one_of(st.none(), st.integers(-5, 5)))
arrivals = st.lists(st.lists(keys_and_values, max_size=8), max_size=3)


class SliceStore(RuleBasedStateMachine):
    """What both machines share: a farm of instances, and the dict it has to agree with."""

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.farm: Farm | None = None

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Any:
        raise NotImplementedError

    def apply(self, old: tuple[Any, ...] | None, values: list[int | None]) -> tuple[Any, ...] | None:
        """The state of a key after an epoch that brings these values."""
        raise NotImplementedError

    @initialize(kind=st.sampled_from(sorted(KEYS)), hashes=st.sampled_from(sorted(HASHES)), form=st.sampled_from(["a", "b"]))
    def start(self, kind: str, hashes: str, form: str) -> None:
        key, self.pool = KEYS[kind]
        self.names = key.names
        rows = key.append(pa.field("v", pa.int64()))
        self.farm = Farm(self.logic(key, rows, form), rows, HASHES[hashes], SLICES)

    @rule(parts=arrivals)
    def epoch(self, parts: list[list[tuple[int, int | None]]]) -> None:
        assert self.farm is not None
        batches = [[self.row(i, v) for i, v in part] for part in parts]
        touched: dict[tuple[Any, ...], list[int | None]] = {}
        for batch in batches:
            for row in batch:
                touched.setdefault(canon_row(row, self.names), []).append(row["v"])
        expected = []
        for key, values in touched.items():
            after = self.apply(self.model.pop(key, None), values)
            if after is not None:
                self.model[key] = after
            expected.append((key, after))
        result = self.farm.epoch(*batches)
        assert multiset(result.output) == multiset(self.output(key, after) for key, after in expected)

    @rule(owner=st.lists(st.integers(0, 2), min_size=SLICES, max_size=SLICES))
    def move(self, owner: list[int]) -> None:
        """Slices change hands: some go away and come back later."""
        assert self.farm is not None
        self.farm.owner = owner

    @rule(slice_=st.integers(0, SLICES - 1), instance=st.integers(0, 3))
    def move_one(self, slice_: int, instance: int) -> None:
        assert self.farm is not None
        self.farm.owner[slice_] = instance

    @invariant()
    def the_store_holds_what_the_dict_holds(self) -> None:
        if self.farm is None:
            return
        assert multiset(self.farm.stored()) == multiset(self.state(k, s) for k, s in self.model.items())
        assert self.farm.keys == len(self.model)

    @precondition(lambda self: self.farm is not None)
    @rule()
    def look_up_every_key(self) -> None:
        assert self.farm is not None
        rows = [self.row(i, 0) for i in range(len(self.pool))]
        for row, found in zip(rows, self.farm.look_up(rows), strict=True):
            state = self.model.get(canon_row(row, self.names))
            assert (None if found is None else tuple(found.values())) == state

    def row(self, index: int, value: int | None) -> Row:
        key = self.pool[index % len(self.pool)]
        return {**dict(zip(self.names, key, strict=True)), "v": value}

    def state(self, key: tuple[Any, ...], state: tuple[Any, ...]) -> Row:
        return {**dict(zip(self.names, key, strict=True)), **dict(zip(("a", "b"), state, strict=False))}

    def output(self, key: tuple[Any, ...], after: tuple[Any, ...] | None) -> Row:
        raise NotImplementedError


class AggregateStore(SliceStore):
    """Count and sum; nothing is ever deleted."""

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Any:
        return AggregateLogic(key, rows, {"n": agg.count(), "total": agg.sum("v")}, SLICES)

    def apply(self, old: tuple[Any, ...] | None, values: list[int | None]) -> tuple[Any, ...]:
        n, total = old or (0, None)
        numbers = [v for v in [total, *values] if v is not None]
        return n + len(values), sum(numbers) if numbers else None

    def state(self, key: tuple[Any, ...], state: tuple[Any, ...]) -> Row:
        return {**dict(zip(self.names, key, strict=True)), "n.0": state[0], "total.0": state[1]}

    def output(self, key: tuple[Any, ...], after: tuple[Any, ...] | None) -> Row:
        assert after is not None
        return {**dict(zip(self.names, key, strict=True)), "n": after[0], "total": after[1]}


STATE = pa.schema([("a", pa.int64()), ("b", pa.int64())])


def keep_positive(key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, list[Row]]:
    """Adds up; a null, or a total below zero, forgets the key."""
    total = 0 if state is None else state["a"]
    values = [r["v"] for r in rows]
    total += sum(v for v in values if v is not None)
    gone = None in values or total < 0
    after = None if gone else {"a": total, "b": len(rows)}
    return after, [{**key, "a": None if gone else total, "rows": len(rows)}]


def keep_positive_vectorised(groups: Groups) -> Reduced:
    values = groups.rows.column("v")
    total = np.add.reduceat(values.fill_null(0).to_numpy(), groups.starts)
    nulls = np.add.reduceat(values.is_null().to_numpy().astype(np.int64), groups.starts)
    total = total + groups.state.column("a").fill_null(0).to_numpy()
    keep = (nulls == 0) & (total >= 0)
    sizes = pa.array(np.diff(np.append(groups.starts, groups.rows.num_rows)))
    output = groups.keys.append_column("a", pa.array(total, mask=~keep)).append_column("rows", sizes)
    return Reduced(pa.table({"a": total, "b": sizes}), output, keep)


class ReduceStore(SliceStore):
    """A reducer that forgets keys, in its per-key and its vectorised form."""

    def logic(self, key: pa.Schema, rows: pa.Schema, form: str) -> Any:
        output = key.append(pa.field("a", pa.int64())).append(pa.field("rows", pa.int64()))
        reducer: Callable[[Groups], Reduced] = PerKey(keep_positive, STATE, output)
        return ReduceLogic(key, rows, reducer if form == "a" else keep_positive_vectorised, STATE, output)

    def apply(self, old: tuple[Any, ...] | None, values: list[int | None]) -> tuple[Any, ...] | None:
        before = None if old is None else {"a": old[0]}
        self.size = len(values)
        after, _ = keep_positive({}, [{"v": v} for v in values], before)
        self.sizes = {**getattr(self, "sizes", {})}
        return None if after is None else (after["a"], after["b"])

    def epoch_output(self) -> None:
        return None

    def output(self, key: tuple[Any, ...], after: tuple[Any, ...] | None) -> Row:
        raise NotImplementedError

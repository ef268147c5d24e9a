"""More than 2 GiB in one column: no table of the state has 32-bit offsets, and what leaves it is cut to fit them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from state_kit import Farm

from springtide.blocks.block import decode, encode
from springtide.state import wide
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import functions
from springtide.state.aggregates.base import Starts
from springtide.state.aggregates.extreme import Extreme
from springtide.state.chain import Chain
from springtide.state.dedupe import DedupeLogic
from springtide.state.layout import KEY, POSITION, STATE, Layout
from springtide.state.logic import Groups, Logic, Moment
from springtide.state.reduce import Reduced, ReduceLogic
from springtide.state.run import Run, merge
from springtide.state.update import update
from springtide.state.wide import narrowed, wide_schema, widened
from springtide.state.window import Window

ROWS = pa.schema([("k", pa.string()), ("v", pa.string()), ("b", pa.binary()), ("at", pa.timestamp("us"))])
KEYS = pa.schema([ROWS.field("k")])
NESTED = pa.schema(
    [("k", pa.string()), ("l", pa.list_(pa.string())), ("s", pa.struct([("b", pa.binary()), ("n", pa.int64())]))]
)


def limited(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types inside one that have 32-bit offsets."""
    t = pa.types
    if t.is_string(kind) or t.is_binary(kind) or t.is_list(kind):
        yield kind
    for i in range(kind.num_fields):
        yield from limited(kind.field(i).type)


def check_wide(schema: pa.Schema) -> None:
    found = {field.name: list(limited(field.type)) for field in schema}
    assert not any(found.values()), found


def reducer(groups: Groups) -> Reduced:
    """The last rows of each key; it gets and gives the types that its user declared."""
    assert groups.keys.schema == KEYS
    assert groups.state.schema == NESTED
    assert groups.rows.schema.types == [ROWS.field(n).type for n in groups.rows.column_names]
    lasts = np.append(groups.starts[1:], groups.rows.num_rows) - 1
    values = groups.rows.take(pa.array(lasts)).column("v").to_pylist()
    state = [{"k": v, "l": [v, None], "s": {"b": v.encode(), "n": 1}} for v in values]
    return Reduced(pa.Table.from_pylist(state, schema=NESTED), pa.table({"v": values}))


AGGREGATES = {
    "greatest": functions.max("v"),
    "top": functions.top_k("b", 2),
    "n": functions.count(),
    "different": functions.distinct("v"),
}
LOGICS: dict[str, Logic] = {
    "aggregate": AggregateLogic(KEYS, ROWS, AGGREGATES, 8),
    "windows": AggregateLogic(KEYS, ROWS, AGGREGATES, 8, Window("at", 10, 5, 0)),
    "dedupe": DedupeLogic(KEYS, ROWS),
    "reduce": ReduceLogic(KEYS, ROWS, reducer, NESTED, pa.schema([("v", pa.string())])),
}


def rows(number: int) -> list[dict[str, Any]]:
    return [{"k": f"k{i % 7}", "v": f"v{i + number}", "b": b"%d" % i, "at": i} for i in range(20)]


@pytest.mark.parametrize("name", LOGICS)
def test_no_table_of_the_state_has_32_bit_offsets(name: str) -> None:
    logic = LOGICS[name]
    check_wide(logic.layout.schema)
    farm = Farm(logic, ROWS)
    for number in range(4):
        check_wide(farm._arrive(rows(number)).rows.schema)
        farm.epoch(rows(number), rows(number + 1))
    for block in farm.blocks.values():
        check_wide(decode(block).schema)
    assert logic.layout.describe()["key"][0] == ["k", "string"], "what is recorded of an app is as it was"  # type: ignore[index]


@dataclass(frozen=True)
class Seen(Extreme):
    """The greatest value, of a column that must be wide."""

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        assert values.type == pa.large_string()
        return super().partial(values, rows, starts)


def test_columns_are_wide_before_windows_multiply_their_rows() -> None:
    logic = AggregateLogic(KEYS, ROWS, {"greatest": Seen("v", greatest=True)}, 8, Window("at", 10, 5, 0))
    assert Farm(logic, ROWS)._arrive(rows(0)).rows.num_rows > 20


@pytest.mark.parametrize("name", LOGICS)
def test_results_are_the_same_however_they_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[list[dict[str, Any]]]:
        farm = Farm(LOGICS[name], ROWS)
        return [farm.epoch(rows(number)).output for number in range(4)]

    whole = run()
    monkeypatch.setattr(wide, "NARROW_BYTES", 64)
    assert run() == whole


@pytest.mark.parametrize("name", LOGICS)
def test_rows_and_runs_of_earlier_releases_are_understood(name: str) -> None:
    """Arrivals that wait for a stalled slice, in plain types, and runs whose columns are plain."""
    logic = LOGICS[name]
    farm = Farm(logic, ROWS)
    first, second = (farm._arrive(rows(number)).rows for number in (0, 1))
    expected = _after(logic, first, second)
    assert _after(logic, _plain(first), _plain(second)) == expected


def _after(logic: Logic, *arrivals: pa.Table) -> list[dict[str, Any]]:
    runs: list[Run] = []
    for arrival in arrivals:
        updated = update(logic, Chain(runs, logic.layout), [arrival], Moment())
        if updated.run is None:
            continue
        runs = [run for run in runs if run not in updated.replaced] + [Run(updated.run, logic.layout, 8)]
    return merge(runs, whole=True).to_pylist()  # type: ignore[no-any-return]


def _plain(table: pa.Table) -> pa.Table:
    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_large_list(kind):
            return pa.list_(plain(kind.value_type))
        return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)

    return table.cast(pa.schema([field.with_type(plain(field.type)) for field in table.schema]))


class TestNarrowing:
    TABLE = pa.Table.from_pylist(
        [{"k": f"k{i}" * 9, "l": [f"{i}", None] * (i % 3), "s": {"b": b"x" * i, "n": i}} for i in range(40)],
        schema=NESTED,
    )

    def test_widening_and_narrowing_give_back_what_was(self) -> None:
        check_wide(widened(self.TABLE).schema)
        assert narrowed(widened(self.TABLE), NESTED) == self.TABLE
        assert widened(widened(self.TABLE)).schema == wide_schema(NESTED)

    @pytest.mark.parametrize("limit", [1, 100, 500, 5000])
    def test_what_does_not_fit_one_chunk_comes_in_several(self, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
        monkeypatch.setattr(wide, "NARROW_BYTES", limit)
        found = narrowed(widened(self.TABLE), NESTED)
        assert found == self.TABLE
        chunks = found.column("k").chunks
        assert all(chunk.nbytes <= limit or len(chunk) == 1 for chunk in chunks)
        assert len(chunks) > 1 or limit == 5000

    def test_a_slice_of_a_large_table_is_counted_from_its_own_first_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its offsets go on from those before it, and may be beyond 32 bits though it is small."""
        monkeypatch.setattr(wide, "NARROW_BYTES", 500)
        found = narrowed(widened(self.TABLE).slice(30, 2), NESTED)
        assert found == self.TABLE.slice(30, 2)
        for chunk in found.column("k").chunks:
            assert np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset] == 0


@pytest.mark.slow
def test_two_runs_of_more_than_2_gib_together() -> None:
    """About 6 GiB of memory. The text of both runs is the same buffer."""
    layout = Layout(pa.schema([("k", pa.int64())]), pa.schema([("text", pa.string())]))
    size, count = 1 << 20, 1100
    text = pa.py_buffer(np.full(size * count, ord("x"), np.uint8))
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int64) * size)
    column = pa.LargeStringArray.from_buffers(count, offsets, text)

    def run(first: int) -> Run:
        where = np.arange(first, first + 2 * count, 2)
        columns = {POSITION: where.astype(np.uint64), KEY + "k": where, STATE + "text": column}
        return Run(pa.table(columns, schema=layout.schema), layout, 1)

    merged = merge([run(0), run(1)], whole=True)
    assert merged.column(STATE + "text").nbytes > 1 << 31
    assert merged.column(KEY + "k").to_pylist() == list(range(2 * count))
    plain = narrowed(merged, pa.schema([*list(merged.schema)[:-1], pa.field(STATE + "text", pa.string())]))
    del merged
    assert plain.num_rows == 2 * count
    assert plain.column(STATE + "text")[2 * count - 1].as_py() == "x" * size
    back = decode(encode(plain.slice(0, 3)))
    assert back.num_rows == 3

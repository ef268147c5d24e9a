"""Rows of one input with the columns of all, against the way in which a table of all sides is made."""

import pyarrow as pa
import pytest

from springtide.engine.worker.one_side import OneSide
from springtide.state.sides import sided

LEFT = pa.table({"k": ["a", "b", "b"], "x": [1, 2, None]})
RIGHT = pa.table({"id": ["b"], "k": [7], "s": ["text"]})
BARE = pa.table({"name": ["a", "c"]})
TABLES, KEYS = (LEFT, RIGHT, BARE), (("k",), ("id",), ("name",))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_rows_of_one_side_are_as_among_those_of_all(number: int) -> None:
    """Also where a column has the name of the first side's key, and where a side has no columns beside its own."""
    whole = sided(TABLES, KEYS)
    side = OneSide(number, whole.schema)
    table, key = TABLES[number], KEYS[number]
    own = [name for name in table.column_names if name not in key]
    columns = {"k": table[key[0]], **{place: table[name] for place, name in zip(side.places, own, strict=True)}}
    (batch,) = pa.table({"hash": pa.array(range(len(table))), **columns}).to_batches()
    (found,) = side([batch])
    rows = pa.Table.from_batches([found])
    expected = [row for row in whole.to_pylist() if row["__side"] == number]
    assert rows.select(whole.column_names).cast(whole.schema).to_pylist() == expected
    assert rows["hash"].to_pylist() == list(range(len(table)))

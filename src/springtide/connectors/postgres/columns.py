"""Arrow types in PostgreSQL, and rows as COPY takes them."""

import io
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from springtide.errors import BadType

_INTEGERS = ("int2", "int4", "int8", "numeric")
_FLOATS = ("float4", "float8", "numeric")
_TEXT = ("text", "varchar", "bpchar")
_NAMES = {
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20)",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
}


class NoSuchType(BadType):
    """A column of a type that no column of a table can hold."""

    def __init__(self, column: str, kind: str) -> None:
        super().__init__(column, kind)
        self.column, self.kind = column, kind

    def __str__(self) -> str:
        return (
            f"column {self.column!r}: expected numbers, booleans, strings, binary, dates, times or decimals, got "
            f"{self.kind}; turn it into one of these in a transform, lists and structs with to_json"
        )


def type_name(field: pa.Field) -> str:
    """The type of a column in a table made for these rows."""
    kind = field.type
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_time(kind):
        return "time"
    raise NoSuchType(field.name, str(kind))


def accepted(field: pa.Field) -> tuple[str, ...] | None:
    """The types of a table's column that take such values, by their short names; None: any, as text is parsed."""
    kind = field.type
    type_name(field)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return None
    if pa.types.is_integer(kind):
        return (*_INTEGERS, *_FLOATS, *_TEXT, "oid")
    if pa.types.is_floating(kind):
        return (*_FLOATS, *_TEXT)
    if pa.types.is_decimal(kind):
        return (*_FLOATS, *_TEXT, "money")
    if pa.types.is_timestamp(kind):
        return (("timestamp" if kind.tz is None else "timestamptz"), *_TEXT)
    return {"boolean": ("bool", *_TEXT), "date": ("date", *_TEXT), "bytea": ("bytea",)}.get(
        type_name(field), ("time", *_TEXT)
    )


def as_csv(rows: pa.Table, extra: Mapping[str, npt.NDArray[np.int64]]) -> memoryview:
    """Rows in PostgreSQL's CSV: nulls are empty and unquoted, strings are quoted; `extra` columns come first."""
    columns = {name: pa.array(numbers) for name, numbers in extra.items()}
    columns |= {name: _plain(rows.column(name)) for name in rows.column_names}
    buffer = io.BytesIO()
    csv.write_csv(pa.table(columns), buffer, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return buffer.getbuffer()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that Arrow writes as PostgreSQL reads it."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        text = [None if v is None else "\\x" + v.hex() for v in column.to_pylist()]
        return pa.chunked_array([pa.array(text, pa.large_string())])
    if pa.types.is_decimal(kind):
        return pc.cast(column, pa.string())
    return column

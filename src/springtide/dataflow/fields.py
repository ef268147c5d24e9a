"""Column types as people write them: Arrow types, or Python's own."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from springtide.errors import BadType

Fields = Any
"""An Arrow schema, or a mapping from column names to Arrow or Python types."""

_PYTHON = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
}


def schema_of(fields: Fields) -> pa.Schema:
    """An Arrow schema from `{"name": str, "seen": pa.int64()}` or from a schema."""
    if isinstance(fields, pa.Schema):
        return fields
    if not isinstance(fields, Mapping):
        raise BadType(f"expected an Arrow schema or a mapping of column names to types, got {fields!r}")
    return pa.schema([pa.field(name, _type_of(name, kind)) for name, kind in fields.items()])


def _type_of(name: str, kind: object) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind]
    known = ", ".join(t.__name__ for t in _PYTHON)
    raise BadType(f"column {name!r}: expected an Arrow type or one of {known}, got {kind!r}")

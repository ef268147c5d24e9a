"""Columns with event times."""

import pyarrow as pa

from springtide.dataflow.errors import BadGraph
from springtide.errors import BadType, BadValue
from springtide.state.sides import side_schemas


def require_timestamp(rows: pa.Schema, column: str, key: pa.Schema | None = None) -> None:
    """Refuse a column that is not there, or that is no timestamp; of a key that it is part of, if it is not there."""
    if column not in rows.names and key is not None and column in key.names:
        raise BadValue(
            f"expected a time that is not part of the key, got {column!r}: rows of other times are other keys"
        )
    if column not in rows.names:
        raise BadValue(f"expected a timestamp column {column!r}, got columns {rows.names}")
    if not pa.types.is_timestamp(rows.field(column).type):
        raise BadType(f"expected column {column!r} to be a timestamp, got {rows.field(column).type}")


def beside_key(rows: pa.Schema, key: pa.Schema, *, sided: bool) -> tuple[pa.Schema, ...]:
    """By input: its columns beside the key. Of several inputs, only the first one's key has the names of the key."""
    return side_schemas(rows) if sided else (pa.schema([field for field in rows if field.name not in key.names]),)


def event_columns(step: str, time: object, inputs: int) -> tuple[str, ...]:
    """The column with the event time of each input; BadGraph if that is not what was said."""
    columns = (time,) if isinstance(time, str) else time
    if not isinstance(columns, tuple | list) or len(columns) != inputs or not all(isinstance(c, str) for c in columns):
        expected = "time= a column name" if inputs == 1 else f"time= {inputs} column names, one for each input"
        raise BadGraph(step, expected, repr(time))
    return tuple(columns)

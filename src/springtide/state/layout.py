"""The columns of a run: position, key, state, and where an operator needs them, expiry and tombstones."""

from dataclasses import dataclass

import pyarrow as pa

from springtide.state.wide import wide_type

POSITION = "$position"
EXPIRES = "$expires_us"
DEAD = "$dead"
KEY = "k."
STATE = "s."


@dataclass(frozen=True)
class Layout:
    """How one operator's state looks; recorded in the checkpoint and checked at restart.

    `key` and `state` have the types that users see. On disk and in memory the columns are wide; earlier releases wrote
    plain ones, and these are widened when they are opened.
    """

    key: pa.Schema
    state: pa.Schema
    expires: bool = False
    """Rows carry the event time after which they are let go."""
    drops: bool = False
    """Keys can be removed, so newer runs may hold tombstones for older ones."""

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field(POSITION, pa.uint64(), nullable=False)]
        if self.expires:
            fields.append(pa.field(EXPIRES, pa.int64(), nullable=False))
        if self.drops or self.expires:
            fields.append(pa.field(DEAD, pa.bool_(), nullable=False))
        fields += [pa.field(KEY + f.name, wide_type(f.type)) for f in self.key]
        fields += [pa.field(STATE + f.name, wide_type(f.type)) for f in self.state]
        return pa.schema(fields)

    @property
    def has_tombstones(self) -> bool:
        return self.drops or self.expires

    def keys_of(self, rows: pa.Table) -> list[pa.Array]:
        """The key columns of a table in this layout, each one contiguous array."""
        return [one_array(rows.column(KEY + name)) for name in self.key.names]

    def describe(self) -> dict[str, object]:
        """A stable description to record and compare."""
        return {
            "key": [[f.name, str(f.type)] for f in self.key],
            "state": [[f.name, str(f.type)] for f in self.state],
            "expires": self.expires,
            "drops": self.drops,
        }


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one contiguous array, without a copy where it is one already."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()

"""Columns whose offsets have 64 bits: strings, binary and lists of any size in one column.

Arrow's plain types have 32-bit offsets and end at 2 GiB: to bring more together, as the merge of two runs does, is an
error. Inside the state, all columns are wide. What users and Spark see has the plain types, in as many chunks as it
takes.
"""

import numpy as np
import pyarrow as pa

NARROW_BYTES = 1 << 30
"""A table of up to this size fits 32-bit offsets in one chunk."""


def wide_type(kind: pa.DataType) -> pa.DataType:
    """The type with 64-bit offsets, inside lists and structs too; maps have none."""
    t = pa.types
    if t.is_string(kind):
        return pa.large_string()
    if t.is_binary(kind):
        return pa.large_binary()
    if t.is_list(kind) or t.is_large_list(kind):
        return pa.large_list(_wide_field(kind.value_field))
    if t.is_struct(kind):
        return pa.struct([_wide_field(kind.field(i)) for i in range(kind.num_fields)])
    return kind


def _wide_field(field: pa.Field) -> pa.Field:
    return field.with_type(wide_type(field.type))


def wide_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_wide_field(field) for field in schema])


def widened(table: pa.Table) -> pa.Table:
    """The same rows in wide columns; values are not copied, nor is what is wide already."""
    schema = wide_schema(table.schema)
    return table if schema.types == table.schema.types else table.cast(schema)


def narrowed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with a schema's plain types."""
    if table.schema == schema:
        return table
    return pa.concat_tables([piece.cast(schema) for piece in _pieces(table)])


def _pieces(table: pa.Table) -> list[pa.Table]:
    """Neighbouring rows whose offsets, counted from the first, fit 32 bits."""
    if table.get_total_buffer_size() <= NARROW_BYTES:
        return [table]
    if table.nbytes <= NARROW_BYTES or table.num_rows < 2:
        return [table.take(pa.array(np.arange(table.num_rows)))]
    half = table.num_rows // 2
    return [*_pieces(table.slice(0, half)), *_pieces(table.slice(half))]

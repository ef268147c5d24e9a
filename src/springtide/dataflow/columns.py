"""Whether keyed steps can do with the columns that come to them: known before the first row."""

from collections.abc import Sequence

import pyarrow as pa

from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Keyed, Sides
from springtide.state.aggregates.inputs import inputs_of
from springtide.state.keys import check_key_type
from springtide.state.logic import Logic
from springtide.state.sides import ROW, SIDE


def check_sides(node: Sides, inputs: Sequence[pa.Schema]) -> None:
    """Every side has its key, and keys that are to be equal are of one type."""
    reserved = [name for name in node.keys[0] if name.lower().startswith(SIDE)]
    for rows, key in zip(inputs, node.keys, strict=True):
        _check_key(node.step, key, rows)
        reserved += [name for name in rows.names if name == ROW and name not in key]
    if reserved:
        expected = f"no column named {ROW!r} and no key named {SIDE!r}, which are used on the way"
        raise BadGraph(node.step, expected, repr(reserved))
    first = [inputs[0].field(name) for name in node.keys[0]]
    for rows, key in zip(inputs[1:], node.keys[1:], strict=True):
        for ours, theirs in zip(first, (rows.field(name) for name in key), strict=True):
            if ours.type != theirs.type:
                expected = "keys of one type: cast one of them by a transform before the step"
                raise BadGraph(node.step, expected, f"{ours.name!r} {ours.type} and {theirs.name!r} {theirs.type}")


def check_keyed(node: Keyed, rows: pa.Schema) -> None:
    """The columns of its key and of its aggregates are there."""
    _check_key(node.name, node.key, rows)
    for result, aggregate in getattr(node.operation, "aggregates", {}).items():
        for column in inputs_of(aggregate):
            if column not in rows.names:
                raise BadGraph(node.name, f"{result}= an aggregate of a column among {rows.names}", repr(column))


def bound(node: Keyed, rows: pa.Schema, slices: int) -> Logic:
    """The logic of a step for rows with these columns; ValueError or TypeError if they do not fit."""
    key = pa.schema([rows.field(name) for name in node.key])
    for field in key:
        check_key_type(field.name, field.type)
    logic = node.operation.bind(key, rows, slices)
    names = logic.layout.schema.names
    twice = sorted({name.rpartition(".")[2] for name in names if names.count(name) > 1})
    if twice:
        raise BadGraph(node.name, "other names for columns that the state has besides", repr(twice))
    return logic


def _check_key(step: str, key: Sequence[str], rows: pa.Schema) -> None:
    missing = [name for name in key if name not in rows.names]
    if missing:
        raise BadGraph(step, f"key columns among {rows.names}", repr(missing))

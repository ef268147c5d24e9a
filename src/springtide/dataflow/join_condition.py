"""The condition of a join as SQL text: `left.amount <= right.limit`."""

import pyarrow as pa

from springtide.conditions.condition import SqlCondition
from springtide.conditions.errors import BadCondition
from springtide.conditions.tree import Column
from springtide.state.sides import ROW

LEFT, RIGHT = "left", "right"


def read_condition(step: str, text: str, key: tuple[str, ...], other_key: tuple[str, ...]) -> SqlCondition:
    """A condition before the columns are known. The right stream's key equals the left one's, and goes by its name."""
    same = dict(zip(other_key, key, strict=False))

    def named(column: Column) -> Column:
        return Column(same[column.name], LEFT) if column.side == RIGHT and column.name in same else column

    return SqlCondition.of(f"step {step!r}:", text).over(named)


def resolved(
    condition: SqlCondition, key: pa.Schema, left: pa.Schema, right: pa.Schema, suffix: str, output: pa.Schema
) -> SqlCondition:
    """The condition over the joined columns; BadCondition for a column that is not there, or that is there twice."""
    ours, theirs = {*key.names, *left.names} - {ROW}, {*right.names} - {ROW}

    def refuse(column: Column, expected: str) -> BadCondition:
        return BadCondition(condition.owner, condition.text, expected, repr(str(column)))

    def joined(column: Column) -> Column:
        if column.side not in (None, LEFT, RIGHT):
            raise refuse(column, "columns of left and right, such as left.amount <= right.limit")
        in_left = column.side != RIGHT and column.name in ours
        in_right = column.side != LEFT and column.name in theirs
        if in_left and in_right:
            raise refuse(column, f"left.{column.name} or right.{column.name}, as both streams have it")
        if not in_left and not in_right:
            raise refuse(column, f"columns among left {sorted(ours)} and right {sorted(theirs)}")
        return Column(column.name + suffix if in_right and column.name in ours else column.name)

    found = condition.over(joined)
    found.check(output)
    return found

"""A condition on rows, as a person writes it: `where="price < 10000 AND channel IS NOT NULL"`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from springtide.conditions.errors import ALLOWED, DOUBLES, BadCondition, ConditionFailed
from springtide.conditions.evaluate import evaluate
from springtide.conditions.tree import Column, Node, columns_of, with_columns


@dataclass(frozen=True)
class SqlCondition:
    """Plain data that a worker evaluates; conditions that are written alike are equal."""

    tree: Node
    text: str = field(repr=False)
    owner: str = field(compare=False, repr=False)
    """What it is a condition of, for errors."""

    @classmethod
    def of(cls, owner: str, text: object) -> "SqlCondition":
        """Read SQL text; BadCondition tells what is wrong with it."""
        # The parser takes as long to load as all else here, and most apps and every worker do without.
        from springtide.conditions.reader import Unreadable, read

        if not isinstance(text, str):
            raise BadCondition(owner, repr(text), "a condition as SQL text", type(text).__name__, ALLOWED)
        try:
            return cls(read(text), text, owner)
        except Unreadable as error:
            raise BadCondition(owner, text, "a condition", error.got, ALLOWED) from error

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it asks for."""
        return tuple(dict.fromkeys(columns_of(self.tree)))

    def over(self, changed: Callable[[Column], Column]) -> "SqlCondition":
        """The same condition over other columns."""
        return SqlCondition(with_columns(self.tree, changed), self.text, self.owner)

    def check(self, rows: pa.Schema) -> None:
        """Raise BadCondition if rows with these columns have no truth for it: a column or a type that does not fit."""
        for column in self.columns:
            if column.side is not None or column.name not in rows.names:
                raise BadCondition(self.owner, self.text, f"columns among {rows.names}", repr(str(column)))
        nothing = {column.name: pa.nulls(0, rows.field(column.name).type) for column in self.columns}
        try:
            found = evaluate(self.tree, nothing)
        except (pa.ArrowException, ValueError, TypeError) as error:
            kinds = ", ".join(f"{name} {column.type}" for name, column in nothing.items())
            hint = DOUBLES if "precision" in str(error) else ""
            raise BadCondition(self.owner, self.text, f"types that go together ({kinds})", str(error), hint) from error
        if found.type not in (pa.bool_(), pa.null()):
            raise BadCondition(self.owner, self.text, "something that is true or false", f"{found.type}")

    def __call__(self, rows: pa.Table) -> pa.Array:
        """Which rows it is true of; null counts as not true."""
        return self.fits({column.name: rows.column(column.name) for column in self.columns}, rows.num_rows)

    def fits(self, columns: Mapping[str, pa.ChunkedArray], rows: int) -> pa.Array:
        """The same, of so many rows with these columns."""
        try:
            found = evaluate(self.tree, {name: _one(column) for name, column in columns.items()})
        except pa.ArrowInvalid as error:
            raise ConditionFailed(self.owner, self.text, str(error)) from error
        if isinstance(found, pa.Scalar):
            found = pa.repeat(pa.scalar(found.as_py() is True), rows)
        return pc.fill_null(found.cast(pa.bool_()), False)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

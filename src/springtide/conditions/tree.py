"""A condition as plain data: columns, literals, and functions of both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

Value = bool | int | float | Decimal | str | date | datetime | timedelta | None


@dataclass(frozen=True)
class Column:
    name: str
    side: str | None = None
    """What stands before the dot in `left.price`."""

    def __str__(self) -> str:
        return self.name if self.side is None else f"{self.side}.{self.name}"


@dataclass(frozen=True)
class Literal:
    value: Value


@dataclass(frozen=True)
class Call:
    function: str
    """A key of `springtide.conditions.evaluate.FUNCTIONS`."""
    arguments: tuple["Node", ...]


Node = Column | Literal | Call


def columns_of(node: Node) -> Iterator[Column]:
    """The columns of a condition, in the order in which they are written."""
    if isinstance(node, Column):
        yield node
    if isinstance(node, Call):
        for argument in node.arguments:
            yield from columns_of(argument)


def with_columns(node: Node, changed: Callable[[Column], Column]) -> Node:
    """The same condition over other columns."""
    if isinstance(node, Column):
        return changed(node)
    if isinstance(node, Call):
        return Call(node.function, tuple(with_columns(argument, changed) for argument in node.arguments))
    return node

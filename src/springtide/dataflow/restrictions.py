"""What the owner of a query says about giving way: its priority, and the least accuracy that is of use."""

from dataclasses import dataclass, replace

from springtide.dataflow.errors import BadGraph


@dataclass(frozen=True)
class Restrictions:
    """Of one query, which is what flows into one sink."""

    priority: int = 0
    """Queries of lower priority give way first."""
    minimum_accuracy: float = 1.0
    """The least share of the sources' rows that must be processed; 1: nothing of it may be shed."""

    @property
    def may_shed(self) -> bool:
        return self.minimum_accuracy < 1

    def with_priority(self, query: str, priority: int) -> "Restrictions":
        if type(priority) is not int:
            raise BadGraph(query, "a priority that is a whole number", repr(priority))
        return replace(self, priority=priority)

    def with_minimum_accuracy(self, query: str, accuracy: float) -> "Restrictions":
        number = isinstance(accuracy, int | float) and not isinstance(accuracy, bool)
        if not number or not 0 <= accuracy <= 1:
            raise BadGraph(query, "a minimum accuracy from 0 to 1", repr(accuracy))
        return replace(self, minimum_accuracy=float(accuracy))


NONE = Restrictions()
"""Nothing may be shed, and nothing stands out."""

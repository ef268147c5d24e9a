"""Queries: what a sink gets, and what its owner accepts of it.

In the examples `clicks` is a stream of an `app`, and a `StepHarness` of `springtide.testing` shows what a step does.
"""

from springtide.dataflow.meeting import Builder
from springtide.dataflow.restrictions import NONE, Restrictions


class Query:
    """What flows into one sink, and what its owner accepts of it under overload."""

    def __init__(self, builder: Builder, name: str, restrictions: Restrictions = NONE) -> None:
        self.builder = builder
        self.name = name
        self._restrictions = restrictions

    def with_minimum_accuracy(self, accuracy: float) -> "Query":
        """Under overload, rows may be shed as long as this share of the sources' rows is processed, 0 to 1.

        >>> query = clicks.sink("raw", sinks.noop()).with_minimum_accuracy(0.4)
        """
        return self._restricted(self._restrictions.with_minimum_accuracy(self.name, accuracy))

    def with_priority(self, priority: int) -> "Query":
        """Queries of lower priority give way before this one; 0 unless said.

        >>> query = clicks.sink("urgent", sinks.noop()).with_minimum_accuracy(0.9).with_priority(2)
        """
        return self._restricted(self._restrictions.with_priority(self.name, priority))

    def _restricted(self, restrictions: Restrictions) -> "Query":
        self.builder.restrict(self.name, restrictions)
        return Query(self.builder, self.name, restrictions)

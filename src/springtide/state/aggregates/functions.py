"""The aggregates by the names people know."""

from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.count import Count
from springtide.state.aggregates.distinct import Distinct
from springtide.state.aggregates.extreme import Extreme
from springtide.state.aggregates.mean import Mean
from springtide.state.aggregates.top_k import TopK
from springtide.state.aggregates.total import Sum


def count(column: str | None = None) -> Aggregate:
    """The number of rows, or of the non-null values of a column."""
    return Count(column)


def sum(column: str) -> Aggregate:
    """The sum of a column: 64-bit integers for integers, doubles for floating-point numbers."""
    return Sum(column)


def min(column: str) -> Aggregate:
    """The least value of a column."""
    return Extreme(column, greatest=False)


def max(column: str) -> Aggregate:
    """The greatest value of a column."""
    return Extreme(column, greatest=True)


def mean(column: str) -> Aggregate:
    """The mean of a column."""
    return Mean(column)


def top_k(column: str, k: int) -> Aggregate:
    """The k greatest values of a column, greatest first."""
    return TopK(column, k)


def distinct(column: str) -> Aggregate:
    """How many different values a column has, exactly."""
    return Distinct(column)

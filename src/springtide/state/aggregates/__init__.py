"""Aggregates for `key_by(...).aggregate(...)`: `agg.count()`, `agg.sum("price")`, ..."""

from typing import Any

from springtide.plugins import offered
from springtide.state.aggregates.base import Aggregate, UnsupportedColumn
from springtide.state.aggregates.functions import (
    NoEstimate,
    count,
    distinct,
    max,
    mean,
    min,
    stddev,
    sum,
    top_k,
    variance,
)
from springtide.state.aggregates.row_functions import collect, first, last, top_rows
from springtide.state.aggregates.sketch_functions import approx_distinct, approx_quantile

__all__ = [
    "Aggregate",
    "NoEstimate",
    "UnsupportedColumn",
    "approx_distinct",
    "approx_quantile",
    "collect",
    "count",
    "distinct",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "stddev",
    "sum",
    "top_k",
    "top_rows",
    "variance",
]


def __getattr__(name: str) -> Any:
    """An aggregate that another package offers."""
    return offered("springtide.aggregates", __name__, name)

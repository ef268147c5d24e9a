"""Aggregates for `key_by(...).aggregate(...)`: `agg.count()`, `agg.sum("price")`, ..."""

from springtide.state.aggregates.base import Aggregate, UnsupportedColumn
from springtide.state.aggregates.functions import NoEstimate, count, distinct, max, mean, min, sum, top_k

__all__ = ["Aggregate", "NoEstimate", "UnsupportedColumn", "count", "distinct", "max", "mean", "min", "sum", "top_k"]

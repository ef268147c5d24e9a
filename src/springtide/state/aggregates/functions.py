"""The aggregates by the names people know.

Each takes `where`, a condition as SQL text over the columns of the step's rows: only rows that it is true of count. It
may have columns, numbers, strings, TIMESTAMP, DATE and INTERVAL, comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE,
+ - * / %, COALESCE, LOWER, UPPER and CASE.

In the examples `shown` gives the results for one key with rows whose `price` is 3, 8, 1 and null.
"""

from springtide.conditions.condition import SqlCondition
from springtide.errors import BadValue
from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.count import Count
from springtide.state.aggregates.deviation import Variance
from springtide.state.aggregates.distinct import Distinct
from springtide.state.aggregates.estimated_count import EstimatedCount
from springtide.state.aggregates.estimated_sum import EstimatedMean, EstimatedSum
from springtide.state.aggregates.extreme import Extreme
from springtide.state.aggregates.filtered import Filtered, where_true
from springtide.state.aggregates.mean import Mean
from springtide.state.aggregates.top_k import TopK
from springtide.state.aggregates.total import Sum


class NoEstimate(BadValue):
    """An aggregate that can't be scaled up from a sample of the rows."""

    def __init__(self, aggregate: str, column: str, reason: str) -> None:
        super().__init__(aggregate, column, reason)
        self.aggregate, self.column, self.reason = aggregate, column, reason

    def __str__(self) -> str:
        return (
            f"{self.aggregate} of column {self.column!r}: expected no estimate=True, as {self.reason}; "
            "count, sum and mean can be estimated"
        )


def count(column: str | None = None, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The number of rows, or of the non-null values of a column.

    With `estimate`, rows that were shed are accounted for: the result NAME is scaled up, and the columns NAME_low,
    NAME_high (95 % confidence) and NAME_accuracy (the share of offered rows that was seen) stand beside it.

    >>> shown(n=agg.count(), priced=agg.count("price"))
    {'n': 4, 'priced': 3}
    >>> shown(cheap=agg.count(where="price < 5 OR price IS NULL"))
    {'cheap': 3}
    """
    counted = EstimatedCount if estimate else Count
    if column is None and where is not None:
        return Filtered(counted("*"), SqlCondition.of("agg.count", where), of_rows=True)
    return where_true("count", counted(column), where)


def sum(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The sum of a column: 64-bit integers for integers, doubles for floating-point numbers, decimals for decimals.

    The sum of DECIMAL(p, s) is a DECIMAL(p + 10, s), of 38 digits at most, as in Spark. A sum of integers or decimals
    that does not fit is a NumericOverflow, which names the key: cast the column to DOUBLE.

    With `estimate`, scaled up for rows that were shed, with bounds, as `count` is. The bounds are null until enough
    values were seen: 20, or 60 if all are equal. Decimals have no estimates: cast them to DOUBLE.

    >>> shown(paid=agg.sum("price"))
    {'paid': 12}
    """
    return where_true("sum", EstimatedSum(column) if estimate else Sum(column), where)


def min(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The least value of a column, among the rows that were not shed.

    >>> shown(least=agg.min("price"))
    {'least': 1}
    """
    _refuse(estimate, "min", column, "no seen row tells how small the unseen ones may be")
    return where_true("min", Extreme(column, greatest=False), where)


def max(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The greatest value of a column, among the rows that were not shed.

    >>> shown(most=agg.max("price"))
    {'most': 8}
    """
    _refuse(estimate, "max", column, "no seen row tells how great the unseen ones may be")
    return where_true("max", Extreme(column, greatest=True), where)


def mean(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The mean of a column: a double. That of DECIMAL(p, s) is a DECIMAL(p + 4, s + 4), rounded half up, as in Spark.

    With `estimate`, rows count by how likely they were to be kept, and the mean has bounds, as `sum` has.

    >>> shown(usual=agg.mean("price"))
    {'usual': 4.0}
    """
    return where_true("mean", EstimatedMean(column) if estimate else Mean(column), where)


def variance(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The sample variance of a column, null for fewer than two values; among the rows that were not shed.

    >>> shown(spread=agg.variance("price"))
    {'spread': 13.0}
    """
    _refuse(estimate, "variance", column, "bounds of a variance would need the fourth powers of values")
    return where_true("variance", Variance(column), where)


def stddev(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The sample standard deviation of a column, null for fewer than two values; among the rows that were not shed.

    >>> shown(spread=agg.stddev("price"))
    {'spread': 3.605551275463989}
    """
    _refuse(estimate, "stddev", column, "bounds of a standard deviation would need the fourth powers of values")
    return where_true("stddev", Variance(column, root=True), where)


def top_k(column: str, k: int, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """The k greatest values of a column, greatest first, among the rows that were not shed.

    >>> shown(best=agg.top_k("price", 2))
    {'best': [8, 3]}
    """
    _refuse(estimate, "top_k", column, "no seen row tells how great the unseen ones may be")
    return where_true("top_k", TopK(column, k), where)


def distinct(column: str, *, where: str | None = None, estimate: bool = False) -> Aggregate:
    """How many different values a column has, exactly, among the rows that were not shed.

    >>> shown(prices=agg.distinct("price"))
    {'prices': 3}
    """
    _refuse(estimate, "distinct", column, "the seen rows do not tell how many values occur in unseen rows alone")
    return where_true("distinct", Distinct(column), where)


def _refuse(estimate: bool, aggregate: str, column: str, reason: str) -> None:
    if estimate:
        raise NoEstimate(aggregate, column, reason)

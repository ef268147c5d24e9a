"""The aggregates that estimate, in a state of bounded size, by the names people know.

Each takes `where`, as those of numbers do. Among the rows that were not shed. In the examples `shown` gives the results
for one key with rows whose `price` is 3, 8, 1 and null.
"""

from collections.abc import Iterable, Sequence

from springtide.state.aggregates.approx_distinct import ApproxDistinct
from springtide.state.aggregates.approx_quantile import ApproxQuantile
from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.filtered import where_true
from springtide.state.aggregates.sketches import CountingSketch, QuantileSketch


def approx_distinct(column: str, *, error: float = 0.02, where: str | None = None) -> Aggregate:
    """About how many different values a column has: exactly up to 64, beyond that by a CPC sketch.

    `error` is the standard error, relative, at most: the estimate is within it in about two of three cases, and within
    twice of it in 19 of 20. The state of a key has 1.3 KB for 0.02, and four times as much for half the error. The
    result depends on the values alone, and not on how rows are split or ordered.

    >>> shown(prices=agg.approx_distinct("price"))
    {'prices': 3}
    """
    sketch = CountingSketch.within("approx_distinct", error)
    return where_true("approx_distinct", ApproxDistinct(column, sketch), where)


def approx_quantile(
    column: str, q: float | Sequence[float], *, error: float = 0.01, where: str | None = None
) -> Aggregate:
    """About the least number that a share `q` of a column's numbers does not exceed: with 0.5 the median.

    For a sequence of shares the result is a list. Numbers become doubles; nulls and NaN do not count.

    The rank of the result is off by `error` at most, in 99 of 100 cases: with 0.01, the median is between the 49th and
    the 51st percentile. Up to 2 / `error` numbers it is exact. Beyond that a KLL sketch draws lots, so an epoch that is
    computed again may give another estimate, as good as the first. The state of a key has about 5 KB for 0.01, and
    twice as much for half the error.

    >>> shown(median=agg.approx_quantile("price", 0.5), ends=agg.approx_quantile("price", (0, 1)))
    {'median': 3.0, 'ends': [1.0, 8.0]}
    """
    one = not isinstance(q, Iterable)
    shares = tuple(q) if isinstance(q, Iterable) else (q,)
    sketch = QuantileSketch.within("approx_quantile", error)
    return where_true("approx_quantile", ApproxQuantile(column, shares, sketch, one), where)

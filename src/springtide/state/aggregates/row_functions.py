"""The aggregates that give rows or lists, by the names people know.

Each takes `where`, as those of numbers do. In the examples `shown` gives the results for one key with rows whose
`price` is 3, 8, 1 and null, and whose `at` is 1, 2, 3 and 4.
"""

from collections.abc import Iterable, Sequence

from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.collect import Collect
from springtide.state.aggregates.filtered import where_true
from springtide.state.aggregates.one_row import OneRow
from springtide.state.aggregates.ordering import By, order_by
from springtide.state.aggregates.top_rows import TopRows


def top_rows(
    k: int,
    *,
    by: str | Sequence[str],
    columns: str | Sequence[str],
    ties: bool = False,
    where: str | None = None,
) -> Aggregate:
    """The first k rows, best first: a list of structs with these columns.

    `by="price"` puts the largest price first, `by="-at"` the smallest `at`, and `by=("price", "-at")` the smallest `at`
    among equal prices. Rows that are equal in all of that come in the descending order of the columns, those of `by`
    first: the same k rows whatever the order in which rows come. With `ties`, all rows that equal the k-th in `by` are
    there. Rows with a null in `by` do not count.

    >>> shown(best=agg.top_rows(2, by="price", columns=("at", "price")))
    {'best': [{'at': 2, 'price': 8}, {'at': 1, 'price': 3}]}
    >>> shown(cheapest=agg.top_rows(1, by="-price", columns="at"))
    {'cheapest': [{'at': 3}]}
    """
    chosen = (columns,) if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
    return where_true("top_rows", TopRows(k, order_by("top_rows", by), chosen, ties), where)


def first(column: str, *, by: str | Sequence[str], where: str | None = None) -> Aggregate:
    """The value of a column in the row with the smallest `by`.

    `by` is one column or several, and `"-price"` turns a column around, as in `top_rows`. Of rows that are equal in
    `by`, the one with the greatest value of `column` counts: the same result whatever the order in which rows come. The
    order of arrival would give no such result, as rows are shuffled by key, so there is no default for `by`. Rows with
    a null in `by` do not count. The result is null if the row has a null there.

    >>> shown(opening=agg.first("price", by="at"), cheapest_at=agg.first("at", by="price"))
    {'opening': 3, 'cheapest_at': 3}
    """
    turned = tuple(By(one.column, not one.smallest_first) for one in order_by("first", by))
    return where_true("first", OneRow("first", turned, column), where)


def last(column: str, *, by: str | Sequence[str], where: str | None = None) -> Aggregate:
    """The value of a column in the row with the largest `by`.

    All else is as with `first`: of rows that are equal in `by`, too, the greatest value of `column` counts.

    >>> shown(newest=agg.last("price", by="at"), closing=agg.last("price", by="at", where="price IS NOT NULL"))
    {'newest': None, 'closing': 1}
    """
    return where_true("last", OneRow("last", order_by("last", by), column), where)


def collect(column: str, *, distinct: bool = False, where: str | None = None) -> Aggregate:
    """All non-null values of a column as a list, in ascending order: the same list whatever the order of arrival.

    With `distinct`, each value is there once. The state of a key is this list: it grows with the values, and is written
    anew whenever the key changes. Use a window or a `ttl` where keys go on for ever.

    >>> shown(prices=agg.collect("price"), even=agg.collect("price", distinct=True, where="price % 2 = 0"))
    {'prices': [1, 3, 8], 'even': [8]}
    """
    return where_true("collect", Collect(column, distinct), where)

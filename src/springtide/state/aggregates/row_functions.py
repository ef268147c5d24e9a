"""The aggregates that give rows or lists, by the names people know.

Each takes `where`, as those of numbers do. In the examples `shown` gives the results for one key with rows whose
`price` is 3, 8, 1 and null, and whose `at` is 1, 2, 3 and 4.
"""

from collections.abc import Sequence

from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.filtered import where_true
from springtide.state.aggregates.ordering import order_by
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
    chosen = (columns,) if isinstance(columns, str) else tuple(columns)
    return where_true("top_rows", TopRows(k, order_by("top_rows", by), chosen, ties), where)

"""What each query is: what it reads, what kind of rows it gives, and which of them are to be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import resources

from springtide.errors import BadValue
from springtide.workloads.nexmark.queries.peers import FLINK_LACKS, SPARK_LACKS


class Output(Enum):
    """How the rows of a query are to be read."""

    APPEND = "append"
    """Each row counts."""
    UPSERT = "upsert"
    """The newest row of each key counts."""


@dataclass(frozen=True)
class Query:
    """A query, whose rows have the same columns in the same order whoever runs it."""

    name: str
    title: str
    reads: tuple[str, ...]
    """The tables that it needs: `person`, `auction`, `bid`."""
    stateful: bool = False
    output: Output = Output.APPEND
    key: tuple[str, ...] = ()
    """Of an UPSERT: the columns by which its newest row counts."""
    closed: str | None = None
    """The column that says when a row is final; rows that may not be at the end of the data are not compared."""
    fold: str | None = None
    """What is compared in place of the rows: this SELECT from `rows`. The oracle gives it so."""

    @property
    def number(self) -> int:
        return int(self.name[1:])

    @property
    def spark_lacks(self) -> str | None:
        """Why Spark can't run it as a streaming query; None if it can."""
        return SPARK_LACKS.get(self.name)

    @property
    def flink_lacks(self) -> str | None:
        """Why Flink's SQL can't run it; None if it can."""
        return FLINK_LACKS.get(self.name)

    def sql(self, dialect: str) -> str:
        """The query's text for the `oracle`, `spark` or `flink`.

        >>> CATALOGUE["q2"].sql("oracle")
        'SELECT auction, price FROM bid WHERE auction % 123 = 0\\n'
        """
        return resources.files(__package__).joinpath(f"{self.name}_{dialect}.sql").read_text(encoding="utf-8")


_BID = ("bid",)
_BOTH = ("auction", "bid")
_PEOPLE = ("person", "auction")
_TOTALS = "SELECT bidder, CAST(sum(bid_count) AS BIGINT) AS bid_count FROM rows GROUP BY bidder"
_UPSERT = Output.UPSERT

_QUERIES = (
    Query("q0", "Pass through", _BID),
    Query("q1", "Another currency", _BID),
    Query("q2", "Some auctions", _BID),
    Query("q3", "Who sells here", _PEOPLE, stateful=True),
    Query("q4", "Average price by category", _BOTH, stateful=True, output=_UPSERT, key=("category",)),
    Query("q5", "Hot items", _BID, stateful=True, closed="window_end"),
    Query("q6", "Average price by seller", _BOTH, stateful=True, closed="expires"),
    Query("q7", "Highest bid", _BID, stateful=True, closed="window_end"),
    Query("q8", "New people who sell", _PEOPLE, stateful=True, closed="window_end"),
    Query("q9", "Winning bids", _BOTH, stateful=True, output=_UPSERT, key=("id",)),
    Query("q10", "Log to files", _BID),
    Query("q11", "Sessions of bidders", _BID, stateful=True, closed="session_end"),
    Query(
        "q12",
        "Bids by processing time",
        _BID,
        stateful=True,
        output=_UPSERT,
        key=("bidder", "window_start"),
        fold=_TOTALS,
    ),
    Query("q13", "Join with a table", _BID),
    Query("q14", "Calculation", _BID),
    Query("q15", "Statistics by day", _BID, stateful=True, output=_UPSERT, key=("day",)),
    Query("q16", "Statistics by channel", _BID, stateful=True, output=_UPSERT, key=("channel", "day")),
    Query("q17", "Statistics by auction", _BID, stateful=True, output=_UPSERT, key=("auction", "day")),
    Query("q18", "Last bid", _BID, stateful=True, output=_UPSERT, key=("auction", "bidder")),
    Query("q19", "Top ten bids", _BID, stateful=True, output=_UPSERT, key=("auction", "rank_number")),
    Query("q20", "Bids with their auction", _BOTH, stateful=True),
    Query("q21", "Number of the channel", _BID),
    Query("q22", "Parts of the URL", _BID),
)

CATALOGUE: Mapping[str, Query] = {query.name: query for query in _QUERIES}
"""All queries by their names, in their order."""


def chosen(names: Iterable[str]) -> tuple[Query, ...]:
    """The queries of these names; BadValue, which says what names there are, for any other."""
    names = tuple(names)
    if unknown := sorted(set(names) - set(CATALOGUE)):
        raise BadValue(f"there are no queries {unknown}: expected some of {', '.join(CATALOGUE)}")
    return tuple(CATALOGUE[name] for name in names)

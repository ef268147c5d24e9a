"""How much a running query reads of each source: what its owner admits, and nothing of those that are held back."""

import threading
from collections.abc import Callable, Collection, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from springtide.engine.spark.internals import limit_reads


class ReadLimits:
    """Limits of an app's sources; a query that takes the place of another one gets the same."""

    def __init__(
        self, sources: Collection[str], enact: Callable[[StreamingQuery, Mapping[int, int | None]], None]
    ) -> None:
        self._places = {name: place for place, name in enumerate(sources)}
        self._enact = enact
        self._admitted: dict[str, int] = {}
        self._held: frozenset[str] = frozenset()
        self._query: StreamingQuery | None = None
        """The one that has the limits."""
        self._lock = threading.Lock()

    @classmethod
    def of(cls, spark: SparkSession, sources: Collection[str]) -> "ReadLimits":
        return cls(sources, lambda query, limits: limit_reads(spark, query, limits))

    def admit(self, query: StreamingQuery, rows: Mapping[str, int]) -> None:
        """From its next epoch on, take at most these rows from each source; others stay as they are."""
        with self._lock:
            self._admitted |= {name: most for name, most in rows.items() if name in self._places}
            self._apply(query, self._admitted.keys() & rows.keys())

    def hold(self, query: StreamingQuery, names: Collection[str]) -> None:
        """From its next epoch on, read nothing of these sources, and of others what they may give."""
        with self._lock:
            changed = self._held ^ frozenset(names)
            self._held = frozenset(names)
            if changed or (self._held and query is not self._query):
                self._apply(query, changed | self._held)

    def _apply(self, query: StreamingQuery, names: Collection[str]) -> None:
        names = names if query is self._query or self._query is None else {*names, *self._admitted, *self._held}
        limits = {name: 0 if name in self._held else self._admitted.get(name) for name in names}
        self._query = query
        self._enact(query, {self._places[name]: most for name, most in limits.items()})

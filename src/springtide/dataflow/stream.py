"""Streams: how a person writes the graph.

In the examples `clicks` is a stream of an `app`, and a `StepHarness` of `springtide.testing` shows what a step does.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import FINAL_ONLY, UPDATES, Keyed, Late, MapBatches, Node, Sink, Transform, Union
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.dataflow.meeting import Builder
from springtide.dataflow.query import Query
from springtide.dataflow.sink_spec import Publisher, SinkSpec, as_sink
from springtide.state.window import FINAL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Stream:
    """Rows that flow from one step to the next. Each method adds a named step, or a sink."""

    def __init__(self, builder: Builder, step: str, *, has_final: bool = False, late: Sequence[Late] = ()) -> None:
        self.builder = builder
        self.step = step
        self._has_final = has_final
        self._late = dict(enumerate(late))
        self._late_streams: dict[int, Stream] = {}

    def _then(self, node: Node) -> "Stream":
        self.builder.add(node)
        return Stream(self.builder, node.name)

    def _with_state(self, node: Keyed, inputs: tuple[str, ...]) -> "Stream":
        """Add a step with state; its rows. `inputs` are the steps whose rows it gets, this one first."""
        self.builder.add(node)
        late = [
            Late(f"{node.name}-late" if side == 0 else f"{node.name}-late-{side}", (step,), node.name, lateness)
            for side, (step, lateness) in enumerate(zip(inputs, node.operation.lateness, strict=False))
        ]
        return Stream(self.builder, node.name, has_final=node.operation.has_final, late=late)

    @property
    def late(self) -> "Stream":
        """The rows that came too late for this step, as they came: a stream like any other. Of a join, the left rows.

        They are counted as late in any case. A row is late for windows once all that it is in are closed, and for
        sessions, joins and as-of joins once the watermark has passed it.

        >>> counts = clicks.key_by("user").window("at", "1 minute").aggregate("counts", n=agg.count())
        >>> counts.late.sink("too-late", sinks.memory()).name
        'too-late'
        >>> query = counts.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "counts", {"user": str, "at": datetime})
        >>> first = harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12, 5)}])
        >>> harness.epoch([{"user": "bob", "at": datetime(2026, 1, 1, 12, 1)}])
        []
        >>> [(row["user"], row["at"].minute) for row in harness.late]
        [('bob', 1)]
        """
        return self.late_of(0)

    def late_of(self, side: int) -> "Stream":
        """The rows that came too late from one input of this step, by number: 1 is the right stream of a join.

        >>> payments = clicks.transform("payments", lambda df: df).key_by("user")
        >>> paid = clicks.key_by("user").join("paid", payments, time=("at", "at"), window="1 hour")
        >>> query = paid.sink("out", sinks.memory())
        >>> paid.late_of(1).sink("late-payments", sinks.memory()).name
        'late-payments'
        """
        if side not in self._late:
            got = f"input {side} of {len(self._late)} with event times" if self._late else "no event time"
            raise BadGraph(self.step, "rows that may be late, of a window, session or join by event time", got)
        if side not in self._late_streams:
            self._late_streams[side] = self._then(self._late[side])
        return self._late_streams[side]

    def transform(self, name: str, function: "Callable[[DataFrame], DataFrame]") -> "Stream":
        """Any stateless DataFrame → DataFrame function: select, filter, explode, join with a table.

        >>> clicks.transform("lower", lambda df: df.selectExpr("lower(user) AS user")).step
        'lower'
        """
        return self._then(Transform(name, (self.step,), function))

    def filter(self, name: str, condition: "Column | str") -> "Stream":
        """Only the rows for which a condition holds: a SQL string or a Column.

        >>> clicks.filter("dear", "price > 10").step
        'dear'
        """
        stream = self._then(Transform(name, (self.step,), lambda df: df.filter(condition)))
        stream._has_final = self._has_final
        return stream

    def map_batches(self, name: str, function: Callable[[pa.Table], pa.Table], output: Fields) -> "Stream":
        """A function from Arrow table to Arrow table, run on workers; `output` names its columns.

        >>> def users(rows):
        ...     return rows.select(["user"])
        >>> query = clicks.map_batches("users", users, {"user": str}).sink("out", sinks.memory())
        >>> StepHarness(app, "users", {"user": str, "price": int}).epoch([{"user": "ann", "price": 3}])
        [{'user': 'ann'}]
        """
        return self._then(MapBatches(name, (self.step,), function, schema_of(output)))

    def union(self, name: str, *others: "Stream") -> "Stream":
        """The rows of this stream and of others with the same columns.

        >>> more = app.source("more", sources.generator(10))
        >>> clicks.union("both", more).step
        'both'
        """
        if any(other.builder is not self.builder for other in others):
            raise BadGraph(name, "streams of one app", "a stream of another app")
        return self._then(Union(name, (self.step, *(other.step for other in others))))

    def key_by(self, *columns: str) -> KeyedStream:
        """Rows of equal key are brought together, for the keyed step that follows.

        >>> clicks.key_by("user", "country").key
        ('user', 'country')
        """
        if not columns or not all(isinstance(c, str) for c in columns):
            raise BadGraph(self.step, "key_by with one or more column names", repr(columns))
        if len(set(columns)) != len(columns):
            raise BadGraph(self.step, "key_by with different column names", repr(columns))
        return KeyedStream(self, columns)

    def sink(self, name: str, spec: SinkSpec | Publisher, *, mode: str = UPDATES) -> Query:
        """Publish each epoch's rows; `mode="final"` publishes only rows of closed windows.

        What is returned can be told what the query is worth, for the time when there is more load than machine.

        >>> clicks.key_by("user").aggregate("count", n=agg.count()).sink("out", sinks.memory()).name
        'out'
        """
        if mode not in (UPDATES, FINAL_ONLY):
            raise BadGraph(name, f"mode {UPDATES!r} or {FINAL_ONLY!r}", repr(mode))
        if mode == FINAL_ONLY and not self._has_final:
            raise BadGraph(
                name,
                f"a windowed stream with its {FINAL!r} column for mode={FINAL_ONLY!r}",
                f"step {self.step!r}, whose rows are never final",
            )
        sink = as_sink(spec)
        if sink is None:
            raise BadGraph(name, "a sink from springtide.sinks", repr(spec))
        self.builder.add(Sink(name, (self.step,), sink, mode))
        return Query(self.builder, name)

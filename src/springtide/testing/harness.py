"""Runs one step of an app on rows that a test gives it, as the engine would, without Spark."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from springtide.builder import Dataflow
from springtide.dataflow.columns import bound, check_keyed, check_sides
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import Keyed, MapBatches, Sides
from springtide.state.chain import Chain
from springtide.state.clock import WallTime
from springtide.state.layout import KEY, POSITION, STATE
from springtide.state.logic import BEGINNING_US, Moment, canonical_keys
from springtide.state.position import positions, slice_of
from springtide.state.run import Run, merge
from springtide.state.sides import sided
from springtide.state.update import update

Row = dict[str, Any]
KeyHash = Callable[[tuple[Any, ...]], int]


def stable_hash(key: tuple[Any, ...]) -> int:
    """A 64-bit hash of a key that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True)
class _Stored:
    """A run, and the slices it still counts for."""

    run: pa.Table
    slices: frozenset[int]


class StepHarness:
    """A keyed step or a `map_batches` step, fed by hand.

    `columns` are the step's input columns and their types; for a step with several inputs, such as a join, one such
    mapping for each, and `epoch` takes the rows of each. The state is cut into slices and shared by
    `instances`, as on a cluster; set `instances` between two epochs to rescale. `hash` decides where a
    key lies: give one that collides to test that too. `kept` is the share of offered rows that those given are;
    set it between two epochs to tell estimates that the load is shed differently. `clock` is the wall clock, of which
    event time may run ahead by as much as the step allows.
    """

    def __init__(
        self,
        app: Dataflow,
        step: str,
        columns: Fields | Sequence[Fields],
        *,
        instances: int = 1,
        hash: KeyHash = stable_hash,
        kept: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        graph = app.graph()
        node = graph[step]
        if not isinstance(node, Keyed | MapBatches):
            raise BadGraph(step, "a keyed step or map_batches", type(node).__name__.lower())
        self.node = node
        way = graph[node.parents[0]]
        self._keys = way.keys if isinstance(way, Sides) else (getattr(node, "key", ()),)
        several = isinstance(columns, Sequence)
        if several != isinstance(way, Sides) or (several and len(columns) != len(self._keys)):
            raise BadGraph(step, f"the columns of {len(self._keys)} inputs", repr(columns))
        self.inputs = tuple(map(schema_of, columns)) if several else (schema_of(columns),)
        if isinstance(way, Sides):
            check_sides(way, self.inputs)
        empty = [schema.empty_table() for schema in self.inputs]
        self.rows = sided(empty, self._keys).schema if several else self.inputs[0]
        self.slices = app.slices
        self.instances = instances
        self.kept = kept
        self.late_rows = 0
        self.late: list[Row] = []
        """The rows of the last epoch that came too late, those of its inputs one after the other."""
        self.ahead_rows = 0
        self._clock = clock
        self.malformed_rows = 0
        self.keys = 0
        """Keys in the state."""
        self._hash = hash
        self._newest_us: tuple[int, ...] = ()
        self._watermark_us = BEGINNING_US
        self._stored: list[_Stored] = []
        if isinstance(node, Keyed):
            check_keyed(node, self.rows)
            self._logic = bound(node, self.rows, app.slices)

    @property
    def watermark_us(self) -> int | None:
        """The event time up to which the last epoch closed windows; None before there is one."""
        return None if self._watermark_us == BEGINNING_US else self._watermark_us

    def epoch(self, *rows: Sequence[Row] | pa.Table) -> list[Row]:
        """Run one epoch, with the rows of each input; the step's output rows, sorted so that tests can compare them."""
        if len(rows) != len(self.inputs):
            raise BadGraph(self.node.name, f"the rows of {len(self.inputs)} inputs", f"those of {len(rows)}")
        tables = [_table(some, schema) for some, schema in zip(rows, self.inputs, strict=True)]
        table = sided(tables, self._keys) if len(tables) > 1 else tables[0]
        if isinstance(self.node, MapBatches):
            return self.node.function(table).to_pylist()  # type: ignore[no-any-return]
        moment = self._next_moment()
        late = [
            t.filter(pa.array(each.rows(t, moment)))
            for t, each in zip(tables, self.node.operation.lateness, strict=False)
        ]
        self.late = [row for table in late for row in table.to_pylist()]
        found = [row for output in self._update(table.cast(self.rows), moment) for row in output.to_pylist()]
        return sorted(found, key=lambda row: [(v is not None, str(v)) for v in row.values()])

    def state(self) -> list[Row]:
        """What is stored of each key."""
        if not self._stored:
            return []
        layout = self._logic.layout
        runs = [Run(s.run, layout, self.slices, live=self._mask(s.slices)) for s in self._stored]
        rows = merge(runs, whole=True)
        names = [n for n in rows.column_names if n.startswith((KEY, STATE))]
        plain = [n.removeprefix(KEY).removeprefix(STATE) for n in names]
        return rows.select(names).rename_columns(plain).to_pylist()  # type: ignore[no-any-return]

    def _next_moment(self) -> Moment:
        before, now_us = self._watermark_us, round(self._clock() * 1e6)
        self._watermark_us = max(before, self._time_us(now_us))
        return Moment(self._watermark_us, before, self.kept, now_us)

    def _update(self, rows: pa.Table, moment: Moment) -> list[pa.Table]:
        assert isinstance(self.node, Keyed)
        keys = canonical_keys(rows, self.node.key)
        tuples = zip(*(k.to_pylist() for k in keys), strict=True)
        hashes = np.array([self._hash(key) for key in tuples], np.int64)
        arrival = self._logic.arrive(positions(hashes, self.slices), keys, rows.select(self._logic.columns), moment)
        self.late_rows += arrival.late_rows
        self.ahead_rows += arrival.ahead_rows
        self.malformed_rows += arrival.malformed_rows
        newest = zip_longest(self._newest_us, arrival.newest_us, fillvalue=BEGINNING_US)
        self._newest_us = tuple(map(max, newest))
        return [self._update_instance(i, arrival.rows, moment) for i in range(self.instances)]

    def _time_us(self, now_us: int) -> int:
        """Where the step's clock stands, by what earlier epochs have shown."""
        clock, slowest_us = self._logic.clock, min(self._newest_us, default=BEGINNING_US)
        if isinstance(clock, WallTime):
            return now_us
        return BEGINNING_US if clock is None or slowest_us == BEGINNING_US else slowest_us - clock.late_us

    def _update_instance(self, instance: int, arrived: pa.Table, moment: Moment) -> pa.Table:
        mine = frozenset(s for s in range(self.slices) if s * self.instances // self.slices == instance)
        wanted = self._mask(mine)[slice_of(arrived.column(POSITION).to_numpy(), self.slices)]
        concerned = [s for s in self._stored if s.slices & mine]
        layout = self._logic.layout
        runs = [Run(s.run, layout, self.slices, str(i), self._mask(s.slices & mine)) for i, s in enumerate(concerned)]
        updated = update(self._logic, Chain(runs, layout), [arrived.filter(pa.array(wanted))], moment)
        gone = {id(concerned[int(run.name)]) for run in updated.replaced}
        kept = [_Stored(s.run, s.slices - mine) if id(s) in gone else s for s in self._stored]
        self._stored = [s for s in kept if s.slices]
        if updated.run is not None and updated.run.num_rows:
            self._stored.append(_Stored(updated.run, mine))
        self.keys += updated.keys_added - updated.keys_removed
        return updated.output

    def _mask(self, slices: frozenset[int]) -> np.ndarray:
        mask = np.zeros(self.slices, np.bool_)
        mask[list(slices)] = True
        return mask


def _table(rows: Sequence[Row] | pa.Table, schema: pa.Schema) -> pa.Table:
    return rows.cast(schema) if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=schema)

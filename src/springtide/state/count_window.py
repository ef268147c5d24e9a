"""Windows of a number of rows: the first so many rows of a key, then as many again."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from springtide.state.accumulators import Accumulators, KeyedBy
from springtide.state.aggregates import Aggregate
from springtide.state.clock import Clock
from springtide.state.layout import Layout, one_array
from springtide.state.logic import Arrival, Changes, Closed, Groups, Moment, sorted_rows
from springtide.state.position import Positions
from springtide.state.wide import narrowed, wide_schema
from springtide.state.window import FINAL

NUMBER = "window_number"
ROWS = "$rows"
"""The column of the state with how many rows the open window has."""


@dataclass(frozen=True)
class CountWindowLogic:
    """A key's state is its open window: its number, how many rows it has, and their accumulators.

    Which rows a window has depends on the order in which they come, so they are not combined before the shuffle.
    """

    key: pa.Schema
    rows: pa.Schema
    aggregates: Mapping[str, Aggregate]
    size: int
    clock: Clock | None = None

    @cached_property
    def _accumulators(self) -> Accumulators:
        return Accumulators(self.rows, self.aggregates)

    @property
    def layout(self) -> Layout:
        return Layout(self.key, pa.schema([(NUMBER, pa.int64()), (ROWS, pa.int64()), *self._accumulators.fields]))

    @property
    def columns(self) -> tuple[str, ...]:
        return self._accumulators.columns

    @property
    def output(self) -> pa.Schema:
        results = self._accumulators.results
        return pa.schema([*self.key, pa.field(NUMBER, pa.int64()), *results, pa.field(FINAL, pa.bool_())])

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        return Arrival(sorted_rows(positions, keys, rows, self.layout), rows.num_rows)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        number, count = (
            np.where(groups.known, one_array(groups.state.column(name)).fill_null(0).to_numpy(), 0)
            for name in (NUMBER, ROWS)
        )
        group_of = groups.group_of_row
        place = np.arange(len(group_of)) - groups.starts[group_of] + count[group_of]
        window = place // self.size
        begins = np.append(True, (group_of[1:] != group_of[:-1]) | (window[1:] != window[:-1]))[: len(group_of)]
        starts = np.flatnonzero(begins)
        of_key, of_window = group_of[starts], window[starts]
        filled = place[np.append(starts[1:], len(group_of)) - 1] % self.size + 1
        keys = KeyedBy(groups.keys.column_names, [one_array(c).take(pa.array(of_key)) for c in groups.keys.columns])
        fresh = self._accumulators.summarise(groups.rows, pa.array(np.arange(len(group_of))), starts, moment.kept, keys)
        goes_on = (of_window == 0) & (count[of_key] > 0)
        before = {name: one_array(groups.state.column(name)).take(pa.array(of_key[goes_on])) for name in fresh}
        parts = self._accumulators.continued(before, fresh, goes_on, keys)
        numbers, final = pa.array(number[of_key] + of_window), filled == self.size
        output = pa.table(
            [*keys.columns, numbers, *self._accumulators.finish(parts, keys).values(), pa.array(final)],
            names=self.output.names,
        )
        return Changes(
            self._state(parts, of_key, number + self._full(place, groups), filled), narrowed(output, self.output)
        )

    def _full(self, place: np.ndarray, groups: Groups) -> np.ndarray:
        """By key: how many windows are full with these rows."""
        lasts = place[np.append(groups.starts[1:], len(place)) - 1]
        full: np.ndarray = (lasts + 1) // self.size
        return full

    def _state(
        self, parts: Mapping[str, pa.Array], of_key: np.ndarray, number: np.ndarray, filled: np.ndarray
    ) -> pa.Table:
        """The open window of each key; of one that has just begun, the accumulators do not count."""
        lasts = np.flatnonzero(np.append(of_key[1:] != of_key[:-1], True))
        columns = {NUMBER: pa.array(number), ROWS: pa.array(filled[lasts] % self.size)}
        columns |= {name: part.take(pa.array(lasts)) for name, part in parts.items()}
        return pa.table(columns, schema=wide_schema(self.layout.state))

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        return Closed(self.output.empty_table())

"""One epoch of one instance: look up, update, let go what is over, and fold into the chain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.chain import Chain
from springtide.state.layout import DEAD, EXPIRES, KEY, POSITION, STATE, Layout, one_array
from springtide.state.logic import VALUE, Changes, Groups, Logic, Moment, Segment
from springtide.state.run import Run, merge
from springtide.state.wide import wide_schema, widened


@dataclass(frozen=True)
class Updated:
    """The new run (None if nothing changed), the runs it replaces, the output, and the balance."""

    run: pa.Table | None
    replaced: tuple[Run, ...]
    output: pa.Table
    keys_added: int
    keys_removed: int

    def next_expiry_us(self, before: Chain, moment: Moment) -> int:
        """When the next key expires, given the chain before the epoch and what the clock showed; FOREVER_US if none."""
        gone = {id(run) for run in self.replaced}
        kept = [run for run in before.runs if id(run) not in gone]
        new = [] if self.run is None else [Run(self.run, before.layout, 1)]
        return Chain([*kept, *new], before.layout).next_expiry_us(moment.watermark_us)


Missed = tuple[Moment, Sequence[pa.Table]]
"""An epoch that a chain has not seen yet: where event time stood, and the rows that arrived."""


def update(
    logic: Logic, chain: Chain, arrivals: Sequence[pa.Table], moment: Moment, *, loose: Sequence[Run] = ()
) -> Updated:
    """Merge an epoch's arrivals into an instance's state.

    `loose` are runs that lie on top of the chain and are stored nowhere yet; the new run takes them in.
    """
    whole = Chain([*chain.runs, *loose], chain.layout)
    changed, output, added, removed = _changes(logic, whole, arrivals, moment)
    if not changed.num_rows and not loose:
        return Updated(None, (), output, 0, 0)
    run, replaced = whole.fold(changed, len(loose))
    return Updated(run, replaced[: len(replaced) - len(loose)], output, added, removed)


@dataclass(frozen=True)
class CaughtUp:
    """What missed epochs have changed, as one run to lay on top (None: nothing); their output, and the balance."""

    run: Run | None
    output: tuple[pa.Table, ...]
    keys_added: int
    keys_removed: int


def catch_up(logic: Logic, chain: Chain, missed: Sequence[Missed]) -> CaughtUp:
    """Let a chain see the epochs that it has missed."""
    top: Run | None = None
    outputs: list[pa.Table] = []
    all_added = all_removed = 0
    for moment, arrivals in missed:
        seen = chain if top is None else Chain([*chain.runs, top], chain.layout)
        changed, output, added, removed = _changes(logic, seen, arrivals, moment)
        if changed.num_rows:
            rows = changed if top is None else merge([top, Run(changed, chain.layout, 1)], whole=False)
            top = Run(rows, chain.layout, 1)
            all_added, all_removed = all_added + added, all_removed + removed
        outputs.append(output)
    return CaughtUp(top, tuple(outputs), all_added, all_removed)


def _changes(
    logic: Logic, chain: Chain, arrivals: Sequence[pa.Table], moment: Moment
) -> tuple[pa.Table, pa.Table, int, int]:
    """The changed state rows by position, tombstones among them; the output; keys added and removed.

    What is over is settled first: rows that come find what is left of it.
    """
    over = _over(chain, moment)
    if over is None:
        return _apply(logic, chain, arrivals, moment)
    closed = logic.close(over, moment)
    left = chain.layout.schema.empty_table() if closed.left is None else closed.left
    top = Run(_in_order([_tombstones(_without(over, left, chain.layout)), left]), chain.layout, 1)
    changed, output, added, removed = _apply(logic, Chain([*chain.runs, top], chain.layout), arrivals, moment)
    rows = merge([top, Run(changed, chain.layout, 1)], whole=False) if changed.num_rows else top.rows
    return rows, pa.concat_tables([closed.output, output]), added, removed + over.num_rows - left.num_rows


def _over(chain: Chain, moment: Moment) -> pa.Table | None:
    """The state of keys whose expiry has come with this epoch; None if there are none."""
    if not chain.layout.expires or moment.watermark_us <= moment.previous_watermark_us:
        return None
    rows = chain.expired(moment.previous_watermark_us, moment.watermark_us)
    return rows if rows.num_rows else None


def _apply(
    logic: Logic, chain: Chain, arrivals: Sequence[pa.Table], moment: Moment
) -> tuple[pa.Table, pa.Table, int, int]:
    """The changed state rows by position, the output, and the numbers of keys added and removed."""
    layout = logic.layout
    arrivals = [widened(rows) for rows in arrivals if rows.num_rows]
    if not arrivals:
        return layout.schema.empty_table(), logic.output.empty_table(), 0, 0
    rows = pa.concat_tables(arrivals).combine_chunks()
    segment = Segment.of(rows.column(POSITION).to_numpy(), layout.keys_of(rows), presorted=True)
    groups = _groups(logic, chain, rows.take(segment.order), segment)
    changes = logic.update(groups, moment)
    keep = np.ones(len(groups), np.bool_) if changes.keep is None else changes.keep
    # A key that was never stored and is not kept leaves no trace, not even a tombstone.
    write = keep | groups.known if changes.write is None else changes.write
    changed = _state_rows(layout, segment, changes, ~keep)
    if not write.all():
        changed = changed.take(pa.array(np.flatnonzero(write)))
    added = int((write & keep & ~groups.known).sum())
    removed = int((~keep & groups.known).sum())
    return changed, changes.output, added, removed


def _groups(logic: Logic, chain: Chain, rows: pa.Table, segment: Segment) -> Groups:
    layout = logic.layout
    found = chain.find(segment.positions, segment.keys)
    old, known = chain.take(found), found.known
    index = np.cumsum(known) - 1
    picks = pa.array(index, mask=~known)
    state = pa.table(
        {n: one_array(old.column(STATE + n)).take(picks) for n in layout.state.names},
        schema=wide_schema(layout.state),
    )
    # A key's column may come among the rows' own, too, as one that is aggregated does.
    columns = {n: KEY + n for n in layout.key.names}
    columns |= {n.removeprefix(VALUE): n for n in rows.column_names if n.startswith(VALUE)}
    plain = rows.select(list(columns.values())).rename_columns(list(columns))
    keys = pa.table(dict(zip(layout.key.names, segment.keys, strict=True)), schema=wide_schema(layout.key))
    return Groups(keys, plain, segment.starts, state, known)


def _state_rows(layout: Layout, segment: Segment, changes: Changes, dead: np.ndarray) -> pa.Table:
    columns = {POSITION: pa.array(segment.positions)}
    if layout.expires:
        columns[EXPIRES] = pa.array(changes.expires_us, pa.int64())
    if layout.has_tombstones:
        columns[DEAD] = pa.array(dead)
    columns |= {KEY + n: k for n, k in zip(layout.key.names, segment.keys, strict=True)}
    columns |= {STATE + n: changes.state.column(n) for n in layout.state.names}
    return pa.table(columns, schema=layout.schema)


def _tombstones(rows: pa.Table) -> pa.Table:
    at = rows.column_names.index(DEAD)
    return rows.set_column(at, rows.schema.field(DEAD), pa.array(np.ones(rows.num_rows, np.bool_)))


def _without(rows: pa.Table, others: pa.Table, layout: Layout) -> pa.Table:
    """The rows whose key is not among the others."""
    if not others.num_rows:
        return rows
    run = Run(rows, layout, 1)
    taken = Chain([Run(others, layout, 1)], layout).find(run.positions, run.keys).run >= 0
    return rows.take(pa.array(np.flatnonzero(~taken)))


def _in_order(tables: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables([t for t in tables if t.num_rows]).combine_chunks()
    return rows.take(pa.array(np.argsort(rows.column(POSITION).to_numpy(), kind="stable")))

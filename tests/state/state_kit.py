"""A keyed operator without Spark: rows in, instances that own slices, runs that pass through bytes."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from springtide.blocks.block import BlockRef, checksum, decode, encode
from springtide.blocks.manifest import OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.ids import Epoch, SliceId
from springtide.state.chain import Chain
from springtide.state.clock import WallTime
from springtide.state.layout import EXPIRES, KEY, POSITION, STATE
from springtide.state.logic import BEGINNING_US, Logic, Moment, canonical_keys
from springtide.state.position import positions, slice_of, slice_starts
from springtide.state.run import Run, merge
from springtide.state.update import update

Row = dict[str, Any]
Canon = tuple[Any, ...]
Hash = Callable[[Canon], int]


def canon(value: Any) -> Any:
    """A value as the store compares it: NaN equals NaN, and -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN!" if math.isnan(value) else value + 0.0
    return value


def canon_row(row: Mapping[str, Any], names: Iterable[str] | None = None) -> Canon:
    return tuple(canon(row[n]) for n in (row if names is None else names))


def multiset(rows: Iterable[Mapping[str, Any]]) -> "Counter[tuple[tuple[str, Any], ...]]":
    """Rows for comparison, with their number: distinct() would hide duplicates."""
    return Counter(tuple(sorted((n, frozen(v)) for n, v in row.items())) for row in rows)


def frozen(value: Any) -> Any:
    """A value, or lists and structs of values, as the store compares them."""
    if isinstance(value, dict):
        return tuple((name, frozen(inner)) for name, inner in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list) else canon(value)


def good_hash(key: Canon) -> int:
    digest = hashlib.blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def length_hash(key: Canon) -> int:
    """Three values only: nearly all keys collide."""
    return len(repr(key)) % 3


def same_hash(key: Canon) -> int:
    """All keys collide, in the last slice."""
    return -1


HASHES: dict[str, Hash] = {"good": good_hash, "length": length_hash, "same": same_hash}


@dataclass(frozen=True)
class EpochResult:
    output: list[Row]
    late_rows: int
    malformed_rows: int
    rewritten: int
    """Rows in the runs that were written."""


@dataclass
class Farm:
    """The driver's and the workers' share of an epoch, as the engine does it."""

    logic: Logic
    rows: pa.Schema
    hash_of: Hash = good_hash
    slices: int = 8
    owner: list[int] = field(default_factory=list)
    """The instance of each slice."""
    state: OperatorState = field(default_factory=OperatorState)
    """The runs, as a manifest names them."""
    blocks: dict[str, pa.Buffer] = field(default_factory=dict)
    keys: int = 0
    newest_us: int = BEGINNING_US
    """The newest event time seen; a test may move it on."""
    now_us: int = 0
    """The wall clock; a test may move it on."""
    moment: Moment = field(default_factory=Moment)
    """That of the last epoch."""
    epochs: int = 0

    def __post_init__(self) -> None:
        self.owner = self.owner or [0] * self.slices

    @property
    def key_names(self) -> list[str]:
        """The user's key columns: those of the layout that are columns of the rows."""
        return [n for n in self.logic.layout.key.names if n in self.rows.names]

    def epoch(self, *arrivals: Sequence[Mapping[str, Any]]) -> EpochResult:
        """One epoch, each arrival a partition of its rows."""
        before_us = self.moment.watermark_us
        clock, newest_us = self.logic.clock, BEGINNING_US
        if isinstance(clock, WallTime):
            newest_us = self.now_us
        elif clock is not None and self.newest_us != BEGINNING_US:
            newest_us = self.newest_us - clock.late_us
        self.moment = Moment(max(before_us, newest_us), before_us)
        arrived = [self._arrive(rows) for rows in arrivals if rows]
        parcels = [a.rows for a in arrived]
        before = self.state
        output: list[Row] = []
        rewritten = 0
        for instance in sorted(set(self.owner)):
            mine = frozenset(SliceId(s) for s, o in enumerate(self.owner) if o == instance)
            chain = self._chain(mine, before)
            updated = update(self.logic, chain, [self._share(p, mine) for p in parcels], self.moment)
            assert updated.output.schema == self.logic.output
            output += updated.output.to_pylist()
            self.keys += updated.keys_added - updated.keys_removed
            new = None
            if updated.run is not None and updated.run.num_rows:
                rewritten += updated.run.num_rows
                new = self._write(updated.run, f"{self.epochs}.{instance}", mine)
            self.state = self.state.replaced({r.name: mine for r in updated.replaced}, new)
        self.epochs += 1
        self.newest_us = max([self.newest_us, *(newest for a in arrived for newest in a.newest_us)])
        return EpochResult(output, sum(a.late_rows for a in arrived), sum(a.malformed_rows for a in arrived), rewritten)

    @property
    def runs(self) -> tuple[BlockRef, ...]:
        return self.state.runs

    def chain_of(self, instance: int) -> Chain:
        return self._chain(frozenset(SliceId(s) for s, o in enumerate(self.owner) if o == instance), self.state)

    def _chain(self, mine: frozenset[SliceId], state: OperatorState) -> Chain:
        concerned = [ref for ref in state.runs if ref.slices & mine]
        return Chain([self._open(ref, mine) for ref in concerned], self.logic.layout)

    def stored(self) -> list[Row]:
        """Every key that the store holds, with its state, slice by slice."""
        names = [*(KEY + n for n in self.logic.layout.key.names), *(STATE + n for n in self.logic.layout.state.names)]
        found: list[Row] = []
        for instance in sorted(set(self.owner)):
            chain = self.chain_of(instance)
            if chain.runs:
                found += merge(chain.runs, whole=True).select(names).to_pylist()
        return [{n.partition(".")[2]: v for n, v in row.items()} for row in found]

    def look_up(self, rows: Sequence[Mapping[str, Any]]) -> list[Row | None]:
        """The state of the keys of these rows, each through its owner's chain."""
        keys = canonical_keys(pa.Table.from_pylist([dict(r) for r in rows], schema=self.rows), tuple(self.key_names))
        where = self._positions(rows)
        owners = np.array(self.owner)[slice_of(where, self.slices)]
        result: list[Row | None] = [None] * len(rows)
        for instance in np.unique(owners):
            asked = np.flatnonzero(owners == instance)
            chain = self.chain_of(int(instance))
            found = chain.find(where[asked], [k.take(pa.array(asked)) for k in keys])
            for row, state in zip(asked[found.known], chain.take(found).to_pylist(), strict=True):
                result[row] = {n.removeprefix(STATE): v for n, v in state.items() if n.startswith(STATE)}
        return result

    def _positions(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        hashes = [self.hash_of(canon_row(r, self.key_names)) for r in rows]
        return positions(np.array(hashes, np.int64), self.slices)

    def _arrive(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=self.rows)
        keys = canonical_keys(table, tuple(self.key_names))
        arrival = self.logic.arrive(self._positions(rows), keys, table.select(list(self.logic.columns)), self.moment)
        assert arrival.rows_in == len(rows)
        where = arrival.rows.column(POSITION).to_numpy()
        assert (where[1:] >= where[:-1]).all(), "rows travel sorted by position"
        return arrival

    def _share(self, rows: pa.Table, mine: frozenset[SliceId]) -> pa.Table:
        starts = slice_starts(rows.column(POSITION).to_numpy(), self.slices)
        arcs = [rows.slice(starts[s], starts[s + 1] - starts[s]) for s in sorted(mine)]
        return pa.concat_tables(arcs)

    def _open(self, ref: BlockRef, mine: frozenset[SliceId]) -> Run:
        counted = ref.slices
        live = None
        if ref.partial or not counted <= mine:
            live = np.zeros(self.slices, np.bool_)
            live[sorted(counted & mine)] = True
        rows = decode(self.blocks[ref.name])
        return Run(rows, self.logic.layout, self.slices, ref.name, live, expires_us=ref.expires_us)

    def _write(self, rows: pa.Table, name: str, mine: frozenset[SliceId]) -> BlockRef:
        assert rows.schema == self.logic.layout.schema
        where = rows.column(POSITION).to_numpy()
        assert (where[1:] >= where[:-1]).all(), "a run is sorted by position"
        expires = None
        if self.logic.layout.expires:
            values = rows.column(EXPIRES).to_numpy()
            expires = (int(values.min()), int(values.max()))
        data = self.blocks[name] = encode(rows)
        return BlockRef(
            name, "step", Epoch(self.epochs), rows.num_rows, data.size, checksum(data), SliceSet.of(mine), expires
        )

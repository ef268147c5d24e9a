"""Auctions and the bids for them, until they close. Runs on workers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.logic import Groups

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
BEST = "best_"
WAITING = "waiting"
_A_MOMENT = pa.scalar(1000, pa.duration("us"))


@dataclass(frozen=True)
class Round:
    """What an epoch has made of some auctions: one row each in every table."""

    state: pa.Table
    auctions: pa.Table
    """Null where an auction has not been seen yet."""
    before: pa.Table
    """The best bid until now, null where there was none."""
    best: pa.Table
    changed: Mask
    """Where the best bid is a new one."""
    timers: pa.Array
    """From when on nothing can happen any more."""


@dataclass(frozen=True)
class Bidding:
    """The best bid of each auction: the highest between its `date_time` and `expires`, and of equal ones the earliest.

    A bid that comes before its auction waits for it. The first schema has the columns of an auction that are kept, the
    second one those of a bid, `price` and `date_time` first, so that each is told from all others.
    """

    auction: pa.Schema
    bid: pa.Schema

    @property
    def state(self) -> pa.Schema:
        best = [field.with_name(BEST + field.name) for field in self.bid]
        return pa.schema([*self.auction, *best, pa.field(WAITING, pa.list_(pa.struct(list(self.bid))))])

    def round(self, groups: Groups) -> Round:
        """Auctions and bids of an epoch, the first and the second side of the groups, beside what was known."""
        count = len(groups)
        auctions, opened = self._auctions(groups)
        before = groups.state.select([BEST + n for n in self.bid.names]).rename_columns(self.bid.names)
        bids, of = self._bids(groups)
        here = opened[of]
        starts, ends = (_us(auctions[name])[of] for name in ("date_time", "expires"))
        times = _us(bids["date_time"])
        fits = here & (starts <= times) & (times <= ends)
        rivals = pa.concat_tables([before, bids.filter(pa.array(fits))])
        picks = _best(rivals, np.append(np.arange(count), of[fits]), count)
        best = rivals.take(pa.array(np.maximum(picks, 0), mask=picks < 0))
        waiting = _lists(bids.filter(pa.array(~here)), of[~here], count)
        state = pa.table([*auctions.columns, *best.columns, waiting], schema=self.state)
        longest = np.zeros(count, np.int64)
        np.maximum.at(longest, of[~here], times[~here])
        lasts = np.where(opened, _us(auctions["expires"]), longest)
        timers = pc.add(pa.array(lasts).view(self.auction.field("expires").type), _A_MOMENT)
        return Round(state, auctions, before, best, picks >= count, timers)

    def _auctions(self, groups: Groups) -> tuple[pa.Table, Mask]:
        """The auction of each key, and whether it has been seen."""
        opened = groups.side(0)
        fresh, kept = opened.sizes > 0, groups.state.select(self.auction.names)
        both = pa.concat_tables([kept, opened.rows.select(self.auction.names)])
        picks = np.where(fresh, len(groups) + opened.starts, np.arange(len(groups)))
        known = pc.is_valid(kept["expires"]).to_numpy()
        return both.take(pa.array(picks)), fresh | known

    def _bids(self, groups: Groups) -> tuple[pa.Table, Numbers]:
        """The bids that waited and those that have come, and the number of the key that each is for."""
        fresh, lists = groups.side(1), groups.state[WAITING].combine_chunks()
        waited = pa.Table.from_struct_array(pc.list_flatten(lists)).cast(self.bid)
        parents = pc.list_parent_indices(lists).to_numpy()
        return pa.concat_tables([waited, fresh.rows.select(self.bid.names)]), np.append(parents, fresh.group_of_row)


def forgotten(groups: Groups) -> Mask:
    """Nobody is kept."""
    return np.zeros(len(groups), np.bool_)


def _best(bids: pa.Table, of: Numbers, keys: int) -> Numbers:
    """The number of the best bid of each key, -1 where there is none; rows without a price are none."""
    prices = bids["price"].fill_null(-1).to_numpy()
    highest = np.zeros(keys, np.int64)
    np.maximum.at(highest, of, prices)
    rivals = np.flatnonzero(prices == highest[of])
    columns = {name: bids[name].take(pa.array(rivals)) for name in bids.column_names if name != "price"}
    order = pc.sort_indices(
        pa.table({"of": of[rivals], **columns}), [(name, "ascending") for name in ("of", *columns)]
    ).to_numpy()
    found, first = np.unique(of[rivals][order], return_index=True)
    picks = np.full(keys, -1)
    picks[found] = rivals[order[first]]
    return picks


def _lists(rows: pa.Table, of: Numbers, keys: int) -> pa.Array:
    """The rows of each key as a list."""
    order = np.argsort(of, kind="stable")
    ends = np.searchsorted(of[order], np.arange(keys + 1))
    structs = rows.take(pa.array(order)).to_struct_array().combine_chunks()
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)


def _us(times: pa.ChunkedArray) -> Numbers:
    found: Numbers = times.cast(pa.int64()).fill_null(0).to_numpy()
    return found

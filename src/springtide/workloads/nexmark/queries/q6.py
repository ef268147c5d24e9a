"""Average price by seller: of the last ten auctions that had closed, whenever another one closes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.dataflow.fields import schema_of
from springtide.dataflow.stream import Stream
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced
from springtide.workloads.nexmark.events import TIMESTAMP
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries.bidding import BEST, Bidding, forgotten

LAST = 10


def query(inputs: Inputs) -> Stream:
    auctions = inputs.auction("id", "seller", "date_time", "expires").key_by("id")
    bids = inputs.bid("auction", "price", "date_time").key_by("auction")
    closed = auctions.co_reduce_batches(
        "closed",
        bids,
        Sold(),
        state=Sold.BIDDING.state,
        output=Sold.OUTPUT,
        on_timer=Sold.close,
        time=("date_time", "date_time"),
        late="4 seconds",
    )
    sellers = closed.key_by("seller")
    return sellers.reduce_batches("averages", Averages(), state=Averages.STATE, output=Averages.OUTPUT)


@dataclass(frozen=True)
class Sold:
    """Auctions that close, with the price of the highest bid. Runs on workers."""

    BIDDING: ClassVar = Bidding(
        schema_of({"seller": int, "date_time": TIMESTAMP, "expires": TIMESTAMP}),
        schema_of({"price": int, "date_time": TIMESTAMP}),
    )
    OUTPUT: ClassVar = schema_of({"seller": int, "auction": int, "expires": TIMESTAMP, "price": int})

    def __call__(self, groups: Groups) -> Reduced:
        now = self.BIDDING.round(groups)
        return Reduced(now.state, self.OUTPUT.empty_table(), timers=now.timers)

    @classmethod
    def close(cls, groups: Groups) -> Reduced:
        state = groups.state
        columns = [state["seller"], groups.keys["id"], state["expires"], state[BEST + "price"]]
        rows = pa.table(columns, schema=cls.OUTPUT)
        return Reduced(state, rows.filter(pc.field("price").is_valid()), forgotten(groups))


@dataclass(frozen=True)
class Averages:
    """Of each seller, the prices of the last auctions, and their mean as of each that has closed. Runs on workers."""

    STATE: ClassVar = schema_of({"prices": pa.list_(pa.int64())})
    OUTPUT: ClassVar = schema_of({"seller": int, "auction": int, "expires": TIMESTAMP, "average": float})

    def __call__(self, groups: Groups) -> Reduced:
        keys = np.arange(len(groups))
        sold = groups.rows.append_column("key", pa.array(groups.group_of_row))
        sold = sold.sort_by([("key", "ascending"), ("expires", "ascending"), ("auction", "ascending")])
        before = groups.state["prices"].combine_chunks()
        old = pc.list_parent_indices(before).to_numpy()
        # Of each key, the prices of before and then the new ones.
        key = np.append(old, sold["key"].to_numpy())
        order = np.argsort(key, kind="stable")
        prices = np.append(pc.list_flatten(before).to_numpy(), sold["price"].to_numpy())[order]
        firsts, ends = (np.searchsorted(key[order], keys, side) for side in ("left", "right"))
        at = np.arange(len(prices))
        since = np.maximum(firsts[key[order]], at - (LAST - 1))
        sums = np.append(0, np.cumsum(prices))
        means = (sums[at + 1] - sums[since]) / (at + 1 - since)
        told = [groups.keys["seller"].take(sold["key"]), sold["auction"], sold["expires"], means[order >= len(old)]]
        kept = at >= ends[key[order]] - (LAST - 1)
        lengths = np.bincount(key[order][kept], minlength=len(groups))
        lists = pa.ListArray.from_arrays(np.append(0, np.cumsum(lengths)).astype(np.int32), pa.array(prices[kept]))
        return Reduced(pa.table([lists], schema=self.STATE), pa.table(told, schema=self.OUTPUT))

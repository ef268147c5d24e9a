"""Average price by category: of the highest bid of each auction, also of those that are still open.

An auction tells its category what its highest bid adds to that of before, and the category adds up.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from springtide.dataflow.fields import schema_of
from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced
from springtide.workloads.nexmark.events import TIMESTAMP
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries.bidding import Bidding, forgotten


def query(inputs: Inputs) -> Stream:
    auctions = inputs.auction("id", "category", "date_time", "expires").key_by("id")
    bids = inputs.bid("auction", "price", "date_time").key_by("auction")
    raised = auctions.co_reduce_batches(
        "raised",
        bids,
        Raised(),
        state=Raised.BIDDING.state,
        output=Raised.OUTPUT,
        on_timer=Raised.close,
        time=("date_time", "date_time"),
        late="4 seconds",
    )
    totals = raised.key_by("category").aggregate("totals", paid=agg.sum("more"), sold=agg.sum("auctions"))
    return totals.transform(
        "average", lambda df: df.selectExpr("category", "CAST(paid AS DOUBLE) / CAST(sold AS DOUBLE) AS average")
    )


@dataclass(frozen=True)
class Raised:
    """What the new bids of an epoch add to the highest one of each auction. Runs on workers."""

    BIDDING: ClassVar = Bidding(
        schema_of({"category": int, "date_time": TIMESTAMP, "expires": TIMESTAMP}),
        schema_of({"price": int, "date_time": TIMESTAMP}),
    )
    OUTPUT: ClassVar = schema_of({"category": int, "more": int, "auctions": int})

    def __call__(self, groups: Groups) -> Reduced:
        now = self.BIDDING.round(groups)
        before = now.before["price"].fill_null(0).to_numpy()
        told = {
            "category": now.auctions["category"],
            "more": now.best["price"].fill_null(0).to_numpy() - before,
            "auctions": (before == 0).astype(np.int64),
        }
        return Reduced(now.state, pa.table(told).filter(pa.array(now.changed)), timers=now.timers)

    @classmethod
    def close(cls, groups: Groups) -> Reduced:
        return Reduced(groups.state, cls.OUTPUT.empty_table(), forgotten(groups))

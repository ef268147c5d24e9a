"""Winning bids: every auction with the highest bid for it, the earliest of those that are equal.

An auction comes again when a higher bid for it has come.
"""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from springtide.dataflow.fields import schema_of
from springtide.dataflow.stream import Stream
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced
from springtide.workloads.nexmark.events import AUCTION, TIMESTAMP
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries.bidding import Bidding, forgotten


def query(inputs: Inputs) -> Stream:
    bids = inputs.bid("auction", "bidder", "price", "date_time", "extra").key_by("auction")
    auctions = inputs.auction().key_by("id")
    return auctions.co_reduce_batches(
        "winning",
        bids,
        Winning(),
        state=Winning.BIDDING.state,
        output=Winning.OUTPUT,
        on_timer=Winning.close,
        time=("date_time", "date_time"),
        late="4 seconds",
    )


@dataclass(frozen=True)
class Winning:
    """The auctions of an epoch for which there is a higher bid. Runs on workers."""

    BIDDING: ClassVar = Bidding(
        AUCTION.remove(0), schema_of({"price": int, "date_time": TIMESTAMP, "bidder": int, "extra": str})
    )
    OUTPUT: ClassVar = pa.schema(
        [
            *AUCTION,
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("bid_date_time", TIMESTAMP),
            ("bid_extra", pa.string()),
        ]
    )

    def __call__(self, groups: Groups) -> Reduced:
        now = self.BIDDING.round(groups)
        bid = now.best.select(["bidder", "price", "date_time", "extra"])
        rows = pa.table([groups.keys["id"], *now.auctions.columns, *bid.columns], schema=self.OUTPUT)
        return Reduced(now.state, rows.filter(pa.array(now.changed)), timers=now.timers)

    @classmethod
    def close(cls, groups: Groups) -> Reduced:
        return Reduced(groups.state, cls.OUTPUT.empty_table(), forgotten(groups))

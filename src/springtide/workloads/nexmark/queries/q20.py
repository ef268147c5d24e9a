"""Bids with their auction: every bid for an auction of category 10, with all that is known of both."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs

AUCTION = {"date_time": "auction_date_time", "extra": "auction_extra"}
BID = {"date_time": "bid_date_time", "extra": "bid_extra"}
COLUMNS = (
    "auction", "bidder", "price", "channel", "url", "bid_date_time", "bid_extra", "item_name", "description",
    "initial_bid", "reserve", "auction_date_time", "expires", "seller", "category", "auction_extra",
)  # fmt: skip


def query(inputs: Inputs) -> Stream:

    auctions = inputs.auction().filter("category-10", "category = 10")
    named = auctions.transform("offers", lambda df: df.withColumnsRenamed(AUCTION))
    bids = inputs.bid().transform("bids", lambda df: df.withColumnsRenamed(BID))
    met = bids.key_by("auction").join("met", named.key_by("id"))
    return met.transform("described", lambda df: df.select(*COLUMNS))

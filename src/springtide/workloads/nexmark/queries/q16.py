"""Statistics by channel and day: the last minute, and how many bids, bidders and auctions, in all and by rank."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries import ranks


def query(inputs: Inputs) -> Stream:
    dated = inputs.bid("auction", "bidder", "price", "channel", "date_time").transform(
        "dated",
        lambda df: df.selectExpr(
            "channel",
            "date_format(date_time, 'yyyy-MM-dd') AS day",
            "date_format(date_time, 'HH:mm') AS at",
            "price",
            "bidder",
            "auction",
        ),
    )
    counts = ranks.people_and_auctions()
    return dated.key_by("channel", "day").aggregate("statistics", minute=agg.max("at"), **counts)

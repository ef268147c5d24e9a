"""Statistics by day: how many bids, bidders and auctions there are, in all and by rank."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries import ranks


def query(inputs: Inputs) -> Stream:
    dated = inputs.bid("auction", "bidder", "price", "date_time").transform(
        "dated", lambda df: df.selectExpr("auction", "bidder", "price", "date_format(date_time, 'yyyy-MM-dd') AS day")
    )
    return dated.key_by("day").aggregate("statistics", **ranks.people_and_auctions())

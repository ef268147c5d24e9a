"""Calculation: bids of some prices in another currency, the time of day, and how many letters c are in their extra."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs

TIME_OF_DAY = """
CASE
    WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
END AS bid_time_type
"""


def query(inputs: Inputs) -> Stream:

    bids = inputs.bid("auction", "bidder", "price", "date_time", "extra")
    euros = bids.transform(
        "euros", lambda df: df.selectExpr("auction", "bidder", "0.908E0 * price AS price", "date_time", "extra")
    )
    dear = euros.filter("dear", "price > 1000000 AND price < 50000000")
    return dear.transform(
        "calculated",
        lambda df: df.selectExpr(
            "auction",
            "bidder",
            "price",
            TIME_OF_DAY,
            "date_time",
            "extra",
            "length(extra) - length(replace(extra, 'c', '')) AS c_counts",
        ),
    )

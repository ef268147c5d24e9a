"""Statistics by auction and day: how many bids there are, in all and by rank, and what they offer."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries import ranks


def query(inputs: Inputs) -> Stream:
    dated = inputs.bid("auction", "price", "date_time").transform(
        "dated", lambda df: df.selectExpr("auction", "date_format(date_time, 'yyyy-MM-dd') AS day", "price")
    )
    return dated.key_by("auction", "day").aggregate(
        "statistics",
        **ranks.bids(),
        min_price=agg.min("price"),
        max_price=agg.max("price"),
        avg_price=agg.mean("price"),
        sum_price=agg.sum("price"),
    )

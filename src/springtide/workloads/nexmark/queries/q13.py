"""Join with a table: every bid with what a table that does not change says of its auction."""

from typing import TYPE_CHECKING

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def query(inputs: Inputs) -> Stream:

    def looked_up(bids: "DataFrame") -> "DataFrame":
        table = bids.sparkSession.read.parquet(inputs.side_input).hint("broadcast")
        found = bids.selectExpr("*", "auction % 10000 AS key").join(table, "key")
        return found.select("auction", "bidder", "price", "date_time", "value")

    return inputs.bid("auction", "bidder", "price", "date_time").transform("looked-up", looked_up)

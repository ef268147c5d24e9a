"""Highest bid: of all bids in every ten seconds, with those that are as high."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates.row_functions import top_rows
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    bids = inputs.bid("auction", "bidder", "price", "date_time", "extra").transform(
        "of-all", lambda df: df.selectExpr("*", "0 AS everybody")
    )
    windows = bids.key_by("everybody").window("date_time", "10 seconds", late="4 seconds")
    columns = ("auction", "bidder", "price", "date_time", "extra")
    highest = windows.aggregate("highest", bids=top_rows(1, by="price", columns=columns, ties=True))
    return highest.filter("over", "final").transform(
        "highest-bids", lambda df: df.selectExpr("inline(bids)", "window_end")
    )

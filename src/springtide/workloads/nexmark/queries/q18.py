"""Last bid: the newest bid of each person for each auction."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates.row_functions import top_rows
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    newest = top_rows(1, by=("date_time", "price", "extra"), columns=("price", "channel", "url", "date_time", "extra"))
    last = inputs.bid().key_by("auction", "bidder").aggregate("last", bids=newest)
    return last.transform("last-bids", lambda df: df.selectExpr("auction", "bidder", "inline(bids)"))

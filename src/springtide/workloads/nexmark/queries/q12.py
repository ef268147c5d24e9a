"""Bids by processing time: how often each person bids in every ten seconds of the wall clock.

A row stands for its window until a newer one comes. Which window a bid falls into depends on when it is read; how many
there are of each person does not.
"""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.state.clock import PROCESSING_TIME
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    windows = inputs.bid("bidder").key_by("bidder").window(PROCESSING_TIME, "10 seconds")
    return windows.aggregate("counted", bid_count=agg.count()).transform(
        "by-person", lambda df: df.select("bidder", "bid_count", "window_start", "window_end")
    )

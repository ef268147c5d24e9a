"""Sessions of bidders: how often each one bids until he is away for ten seconds."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    sessions = inputs.bid("bidder", "date_time").key_by("bidder").session("date_time", "10 seconds", late="4 seconds")
    counted = sessions.aggregate("counted", bid_count=agg.count())
    return counted.filter("over", "final").transform(
        "sessions", lambda df: df.select("bidder", "bid_count", "session_start", "session_end")
    )

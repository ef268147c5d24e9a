"""Top ten bids: the ten highest bids for each auction, with their ranks.

When one of them changes, all ten of the auction come again, and the newest bid of a rank counts.
"""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates.row_functions import top_rows
from springtide.workloads.nexmark.inputs import Inputs

COLUMNS = ("bidder", "price", "channel", "url", "date_time", "extra")


def query(inputs: Inputs) -> Stream:

    highest = top_rows(10, by=("price", "-date_time", "-bidder", "-extra"), columns=COLUMNS)
    top = inputs.bid().key_by("auction").aggregate("top", bids=highest)
    ranked = top.transform("ranked", lambda df: df.selectExpr("auction", "posexplode(bids) AS (place, bid)"))
    return ranked.transform("top-ten", lambda df: df.selectExpr("auction", "bid.*", "place + 1 AS rank_number"))

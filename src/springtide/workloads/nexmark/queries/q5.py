"""Hot items: the auctions with the most bids in the last ten seconds, every two seconds.

Auctions are counted window by window. When a window is over, its counts meet under its end, and the most are found.
"""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.state.aggregates.row_functions import top_rows
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    bids = inputs.bid("auction", "date_time").key_by("auction")
    counted = bids.window("date_time", "10 seconds", "2 seconds", late="4 seconds").aggregate(
        "counted", num=agg.count()
    )
    counts = counted.filter("whole", "final").transform(
        "counts", lambda df: df.selectExpr("auction", "num", "window_start AS began", "window_end AS ended")
    )
    hottest = top_rows(1, by="num", columns=("auction", "num"), ties=True)
    hot = counts.key_by("ended").window("began", "2 seconds").aggregate("hot", items=hottest)
    return hot.filter("settled", "final").transform(
        "hot-items", lambda df: df.selectExpr("inline(items)", "window_start", "ended AS window_end")
    )

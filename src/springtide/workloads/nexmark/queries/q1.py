"""Another currency: every bid with its price in euros, at 0.908 for a dollar."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    bids = inputs.bid("auction", "bidder", "price", "date_time", "extra")
    return bids.transform(
        "euros", lambda df: df.selectExpr("auction", "bidder", "0.908E0 * price AS price", "date_time", "extra")
    )

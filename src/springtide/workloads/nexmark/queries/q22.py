"""Parts of the URL: every bid with the three directories of its URL."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    parts = [f"split_part(url, '/', {number + 3}) AS dir{number}" for number in (1, 2, 3)]
    return inputs.bid("auction", "bidder", "price", "channel", "url").transform(
        "parts", lambda df: df.selectExpr("auction", "bidder", "price", "channel", *parts)
    )

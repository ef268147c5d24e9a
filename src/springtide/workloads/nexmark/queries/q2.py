"""Some auctions: the bids for every auction whose number is a multiple of 123."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    return inputs.bid("auction", "price").filter("some", "auction % 123 = 0")

"""Pass through: every bid as it is. What it costs to read, to commit and to publish."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    return inputs.bid("auction", "bidder", "price", "date_time", "extra")

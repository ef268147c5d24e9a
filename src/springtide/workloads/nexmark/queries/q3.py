"""Who sells here: people of Oregon, Idaho and California with each of their auctions in category 10.

Either may come first, and how long after the other it comes is not bounded, so people and auctions are kept for ever.
"""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    people = inputs.person("id", "name", "city", "state").filter("here", "state IN ('OR', 'ID', 'CA')")
    auctions = inputs.auction("id", "seller", "category").filter("category-10", "category = 10")
    of_seller = auctions.transform("offers", lambda df: df.selectExpr("seller", "id AS auction"))
    met = of_seller.key_by("seller").join("met", people.key_by("id"))
    return met.transform("local", lambda df: df.selectExpr("name", "city", "state", "auction AS id"))

"""Bids by what they offer, as the statistics count them."""

from typing import Any

from springtide.state.aggregates import functions as agg

RANKS = {
    "total": None,
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
"""By name: which bids are of a rank; all are of the total."""


def bids() -> dict[str, Any]:
    """How many bids there are, by rank."""
    return {f"{rank}_bids": agg.count(where=where) for rank, where in RANKS.items()}


def people_and_auctions() -> dict[str, Any]:
    """How many bids, different bidders and different auctions there are, by rank."""
    bidders = {f"{rank}_bidders": agg.distinct("bidder", where=where) for rank, where in RANKS.items()}
    auctions = {f"{rank}_auctions": agg.distinct("auction", where=where) for rank, where in RANKS.items()}
    return bids() | bidders | auctions

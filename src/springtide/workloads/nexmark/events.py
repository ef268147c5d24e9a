"""The events of an online auction: people come, open auctions and bid, all by chance and yet always the same.

Of each 50 events the first is a new person, the next 3 are new auctions, and 46 are bids. Half of all bids go to the
hot auction, the newest one whose number is a multiple of 100; three of four auctions have the hot seller, and three of
four bids the hot bidder, who change in the same way. The others spread over the newest people and auctions.

Events are made in blocks, each from the seed and its number alone. So a part of them can be made by itself, and is
equal whatever the other parts are.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.workloads.nexmark import words

Numbers = npt.NDArray[np.int64]

START_US = 1_740_873_590_000_000
"""2025-03-01 23:59:50 UTC: day and hour change ten seconds after the first event."""
EVENTS_S = 10_000
"""Of event time."""
ROUND, AUCTIONS, BIDS = 50, 3, 46
"""Events in a round, which begins with one person, and how many of them are auctions and bids."""
FIRST_ID = 1000
"""Of people and of auctions."""
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_EVERY = 100
"""Hot people and auctions are those whose number is a multiple of it."""
ACTIVE_PEOPLE = 1000
AHEAD = 10
"""People and auctions that are not there yet may be named by this many numbers."""
MEAN_LIFE_MS = 2000
"""Of an auction: it lives twice that at most."""
_BLOCK = 200
"""Rounds in a block."""

TIMESTAMP = pa.timestamp("us", "UTC")
PERSON = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("email_address", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("date_time", TIMESTAMP),
        ("extra", pa.string()),
    ]
)
AUCTION = pa.schema(
    [
        ("id", pa.int64()),
        ("item_name", pa.string()),
        ("description", pa.string()),
        ("initial_bid", pa.int64()),
        ("reserve", pa.int64()),
        ("date_time", TIMESTAMP),
        ("expires", TIMESTAMP),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BID = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("date_time", TIMESTAMP),
        ("extra", pa.string()),
    ]
)


@dataclass(frozen=True)
class Tables:
    """The people, the auctions and the bids of some events, in the order of their times."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def tables(events: int, seed: int = 0, *, events_s: int = EVENTS_S) -> Tables:
    """The first events; `events_s` of them have times of the same second.

    >>> made = tables(1000)
    >>> made.person.num_rows, made.auction.num_rows, made.bid.num_rows
    (20, 60, 920)
    """
    return part(0, events, seed, events_s=events_s)


def part(first: int, end: int, seed: int = 0, *, events_s: int = EVENTS_S) -> Tables:
    """The events from number `first` up to but not including `end`, as they are among all."""
    if not 0 <= first <= end:
        raise BadValue(f"expected numbers of events with 0 <= first <= end, got {first} and {end}")
    if events_s < 1:
        raise BadValue(f"expected 1 or more events a second, got {events_s}")
    size = ROUND * _BLOCK
    blocks = [_block(number, seed, events_s) for number in range(first // size, -(-end // size))]
    begin = first // size * size
    return Tables(
        _cut([b.person for b in blocks], PERSON, _people(first) - _people(begin), _people(end) - _people(begin)),
        _cut(
            [b.auction for b in blocks], AUCTION, _auctions(first) - _auctions(begin), _auctions(end) - _auctions(begin)
        ),
        _cut([b.bid for b in blocks], BID, _bids(first) - _bids(begin), _bids(end) - _bids(begin)),
    )


def time_us(event: int, events_s: int = EVENTS_S) -> int:
    """The time of an event in microseconds, a whole number of milliseconds."""
    return START_US + event * 1000 // events_s * 1000


def side_input() -> pa.Table:
    """A table that does not change, of 10 000 keys with a value each, to look bids up in."""
    keys = np.arange(10_000)
    return pa.table({"key": keys, "value": pa.array([f"value-{key}" for key in keys])})


def _people(events: int) -> int:
    """Among the first events."""
    return -(-events // ROUND)


def _auctions(events: int) -> int:
    rounds, more = divmod(events, ROUND)
    return rounds * AUCTIONS + min(max(more - 1, 0), AUCTIONS)


def _bids(events: int) -> int:
    return events - _people(events) - _auctions(events)


def _cut(blocks: list[pa.Table], schema: pa.Schema, first: int, end: int) -> pa.Table:
    whole = pa.concat_tables(blocks) if blocks else schema.empty_table()
    return whole.slice(first, end - first).combine_chunks()


def _block(number: int, seed: int, events_s: int) -> Tables:
    random = np.random.default_rng([seed, number])
    rounds = np.arange(number * _BLOCK, (number + 1) * _BLOCK)
    return Tables(
        _person_rows(random, rounds, events_s),
        _auction_rows(random, rounds, events_s),
        _bid_rows(random, rounds, events_s),
    )


def _person_rows(random: np.random.Generator, rounds: Numbers, events_s: int) -> pa.Table:
    rows = len(rounds)
    cards = [words.chosen(random, rows, words.four_digits()) for _ in range(4)]
    names, hosts = words.text(random, rows, 3, 7), words.text(random, rows, 3, 5)
    columns = [
        rounds + FIRST_ID,
        words.chosen(random, rows, words.full_names()),
        pc.binary_join_element_wise(names, "@", hosts, ".com", ""),
        pc.binary_join_element_wise(*cards, " "),
        words.chosen(random, rows, pa.array(words.CITIES)),
        words.chosen(random, rows, pa.array(words.STATES)),
        _times(rounds * ROUND, events_s),
        words.text(random, rows, 16, 32),
    ]
    return pa.table(columns, schema=PERSON)


def _auction_rows(random: np.random.Generator, rounds: Numbers, events_s: int) -> pa.Table:
    people, which = np.repeat(rounds, AUCTIONS), np.tile(np.arange(AUCTIONS), len(rounds))
    rows = len(people)
    times_us = _times_us(people * ROUND + 1 + which, events_s)
    initial = _prices(random, rows)
    columns = [
        people * AUCTIONS + which + FIRST_ID,
        words.text(random, rows, 8, 16),
        words.text(random, rows, 16, 48),
        initial,
        initial + _prices(random, rows),
        _timestamps(times_us),
        _timestamps(times_us + 1000 * (1 + random.integers(0, 2 * MEAN_LIFE_MS, rows))),
        FIRST_ID
        + np.where(random.random(rows) < 3 / 4, people // HOT_EVERY * HOT_EVERY, _recent_people(random, people)),
        FIRST_CATEGORY + random.integers(0, CATEGORIES, rows),
        words.text(random, rows, 16, 32),
    ]
    return pa.table(columns, schema=AUCTION)


def _bid_rows(random: np.random.Generator, rounds: Numbers, events_s: int) -> pa.Table:
    people, which = np.repeat(rounds, BIDS), np.tile(np.arange(BIDS), len(rounds))
    rows, newest = len(people), people * AUCTIONS + AUCTIONS - 1
    open_auctions = max(1, events_s * AUCTIONS * MEAN_LIFE_MS // ROUND // 1000)
    auction = np.where(
        random.random(rows) < 1 / 2, newest // HOT_EVERY * HOT_EVERY, _recent(random, newest, open_auctions)
    )
    # The hot bidder is next to the hot seller, so that people do not bid for what they sell.
    bidder = np.where(random.random(rows) < 3 / 4, people // HOT_EVERY * HOT_EVERY + 1, _recent_people(random, people))
    channel = np.where(
        random.random(rows) < 1 / 2,
        random.integers(0, len(words.HOT_CHANNELS), rows),
        len(words.HOT_CHANNELS) + random.integers(0, words.CHANNELS, rows),
    )
    names, urls = (column.take(pa.array(channel)) for column in words.channels())
    columns = [
        auction + FIRST_ID,
        bidder + FIRST_ID,
        _prices(random, rows),
        names,
        urls,
        _times(people * ROUND + 1 + AUCTIONS + which, events_s),
        words.text(random, rows, 16, 32),
    ]
    return pa.table(columns, schema=BID)


def _recent_people(random: np.random.Generator, newest: Numbers) -> Numbers:
    return _recent(random, newest, ACTIVE_PEOPLE)


def _recent(random: np.random.Generator, newest: Numbers, among: int) -> Numbers:
    """Numbers among the newest ones, or a little ahead of them."""
    oldest = np.maximum(newest + 1 - among, 0)
    return oldest + random.integers(0, newest + 1 - oldest + AHEAD)


def _prices(random: np.random.Generator, rows: int) -> Numbers:
    """In cents: from one dollar to a million, each power of ten as likely as the others."""
    return np.rint(10 ** (random.random(rows) * 6) * 100).astype(np.int64)


def _times_us(event: Numbers, events_s: int) -> Numbers:
    return START_US + event * 1000 // events_s * 1000


def _times(event: Numbers, events_s: int) -> pa.Array:
    return _timestamps(_times_us(event, events_s))


def _timestamps(times_us: Numbers) -> pa.Array:
    return pa.array(times_us).view(TIMESTAMP)

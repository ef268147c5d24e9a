"""The words that events are made of, and text by chance."""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
"""Channels besides the hot ones, each with a URL of its own."""


def text(random: np.random.Generator, rows: int, shortest: int, longest: int) -> pa.Array:
    """A column of small letters by chance, of lengths between the shortest and the longest."""
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(random.integers(shortest, longest, rows, endpoint=True), out=ends[1:])
    letters = random.integers(ord("a"), ord("z"), int(ends[-1]), np.uint8, endpoint=True)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(letters))


def chosen(random: np.random.Generator, rows: int, words: pa.Array) -> pa.Array:
    """A column of words, each as likely as the others."""
    return words.take(pa.array(random.integers(0, len(words), rows)))


@lru_cache(maxsize=1)
def full_names() -> pa.Array:
    return pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])


@lru_cache(maxsize=1)
def four_digits() -> pa.Array:
    return pa.array([f"{number:04d}" for number in range(10_000)])


@lru_cache(maxsize=1)
def channels() -> tuple[pa.Array, pa.Array]:
    """The names of all channels, hot ones first, and the URL of each. Nine of ten others have their number in it."""
    random, count = np.random.default_rng(0), len(HOT_CHANNELS) + CHANNELS
    names = [*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]
    paths = [text(random, count, 3, 5) for _ in range(3)]
    numbered = random.random(count) < 0.9
    numbered[: len(HOT_CHANNELS)] = False
    marks = [f"&channel_id={_reversed(at - len(HOT_CHANNELS))}" if n else "" for at, n in enumerate(numbered)]
    urls = pc.binary_join_element_wise("https://www.nexmark.com", *paths, "item.htm?query=1", "/")
    return pa.array(names), pc.binary_join_element_wise(urls, pa.array(marks), "")


def _reversed(number: int) -> int:
    """The 31 bits of a number in reverse: numbers that are near one another become far apart."""
    return int(f"{number:031b}"[::-1], 2)

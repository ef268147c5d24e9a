"""A seeded, open-loop stream of rows: what the generator source makes, as a pure function.

Every value is a hash of (seed, column, row number). There is no generator state to carry along, so a row
is the same whoever makes it, in whichever batch, however often it is replayed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from springtide.connectors.generator import rates
from springtide.errors import BadValue

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_SPARK_NAMES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    _TIMESTAMP: "TIMESTAMP",
}
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")


class _Lane(IntEnum):
    """One independent stream of random numbers per column."""

    KEY = 0
    VALUE = 1
    DELAY = 2
    VOCABULARY = 3


@dataclass(frozen=True)
class GeneratorSpec:
    """What a generator makes, and when. Validated here; plain data, written as JSON, never pickled."""

    rate: rates.Rate
    """When rows are due, consumed or not."""
    seed: int = 0
    """Two generators of different seed share no values."""
    limit: int | None = None
    """Rows in all, after which the source stays silent; None goes on for ever."""
    keys: int = 1000
    """Distinct keys, or distinct words when there is text."""
    skew: float = 0.0
    """Zipf exponent: key of rank k (from 0) has weight ``(k + 1) ** -skew``; 0 is uniform."""
    words_per_row: int = 0
    """Above 0, a ``text`` column of that many words takes the place of ``key``."""
    disorder_s: float = 0.0
    """``event_time`` lies up to this long before ``due_time``, by a uniform delay."""
    start_s: float | None = None
    """Epoch seconds at which the rate profile starts; None is the moment of the first start."""
    max_rows_per_epoch: int | None = None
    """Admission control: the rest stays in the backlog; None admits all that is due."""
    partitions: int = 2
    """Spark tasks that make the rows of one epoch."""

    def __post_init__(self) -> None:
        for field in ("keys", "partitions", "limit", "max_rows_per_epoch"):
            count = getattr(self, field)
            if count is not None and not (isinstance(count, int) and count >= 1):
                raise BadValue(f"a generator needs a whole {field} >= 1, got {count!r}")
        for field in ("seed", "words_per_row"):
            if not isinstance(getattr(self, field), int):
                raise BadValue(f"a generator needs a whole {field}, got {getattr(self, field)!r}")
        for field in ("skew", "disorder_s", "words_per_row"):
            amount = getattr(self, field)
            if not (math.isfinite(amount) and amount >= 0):
                raise BadValue(f"a generator needs a finite {field} >= 0, got {amount!r}")
        if self.start_s is not None and not math.isfinite(self.start_s):
            raise BadValue(f"a generator needs a finite start_s or None, got {self.start_s!r}")

    def schema(self) -> pa.Schema:
        """The columns of every batch that ``rows`` returns."""
        subject = pa.field("text", pa.string()) if self.words_per_row else pa.field("key", pa.int64())
        times = [pa.field("event_time", _TIMESTAMP), pa.field("due_time", _TIMESTAMP)]
        return pa.schema([pa.field("id", pa.int64()), subject, pa.field("value", pa.float64()), *times])

    def ddl(self) -> str:
        """The same columns as a Spark DDL string."""
        return ", ".join(f"{field.name} {_SPARK_NAMES[field.type]}" for field in self.schema())

    def due_rows(self, elapsed_s: float) -> int:
        """Rows due ``elapsed_s`` after the start, the limit included."""
        due = self.rate.due_rows(elapsed_s)
        return due if self.limit is None else min(due, self.limit)

    def rows(self, start: int, end: int, start_s: float) -> pa.RecordBatch:
        """Rows ``start`` up to but not including ``end`` of the stream that began at ``start_s``.

        Depends on nothing but the spec and the arguments: batches of adjoining ranges, put together, are
        the batch of the whole range.
        """
        if not 0 <= start <= end or (self.limit is not None and end > self.limit):
            raise BadValue(f"rows {start}..{end} are not within 0..{self.limit}")
        row = np.arange(start, end, dtype=np.int64)
        due_s = self.rate.due_at(row)
        if not np.isfinite(due_s).all():
            raise BadValue(f"some of the rows {start}..{end} are never due at {self.rate}")
        due_us = np.rint(due_s * 1e6).astype(np.int64) + round(start_s * 1e6)
        event_us = due_us
        if self.disorder_s > 0:
            delay_us = self._uniform(_Lane.DELAY, row) * (self.disorder_s * 1e6)
            event_us = due_us - np.rint(delay_us).astype(np.int64)
        subject = self._text(start, end) if self.words_per_row else pa.array(self._key(row))
        columns = [pa.array(row), subject, pa.array(self._uniform(_Lane.VALUE, row))]
        times = [pa.array(us).view(_TIMESTAMP) for us in (event_us, due_us)]
        return pa.RecordBatch.from_arrays([*columns, *times], schema=self.schema())

    def to_json(self) -> str:
        """The spec as a JSON string; ``from_json`` reads it back."""
        return json.dumps(asdict(self) | {"rate": self.rate.to_json()})

    @staticmethod
    def from_json(text: str) -> GeneratorSpec:
        """The spec that wrote ``text``; a ``ValueError`` says what is wrong with it otherwise."""
        fields = json.loads(text)
        try:
            return GeneratorSpec(**fields | {"rate": rates.from_json(fields["rate"])})
        except (KeyError, TypeError) as wrong:
            raise BadValue(f"not a generator spec ({wrong}): {text}") from wrong

    def _uniform(self, lane: _Lane, counter: NDArray[np.int64]) -> NDArray[np.float64]:
        return (_bits(self.seed, lane, counter) >> np.uint64(11)) * np.float64(2.0**-53)

    def _key(self, counter: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys by rank, 0 the most frequent; the inverse of the cumulative distribution."""
        uniform = self._uniform(_Lane.KEY, counter)
        if self.skew == 0:
            return (uniform * self.keys).astype(np.int64)
        return np.searchsorted(_zipf_cumulative(self.keys, self.skew), uniform, side="right")

    def _text(self, start: int, end: int) -> pa.Array:
        counter = np.arange(start * self.words_per_row, end * self.words_per_row, dtype=np.int64)
        words = _vocabulary(self.keys, self.seed).take(pa.array(self._key(counter)))
        ends = np.arange(0, len(words) + 1, self.words_per_row, dtype=np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(ends, words), " ")


def split(start: int, end: int, parts: int) -> Iterator[tuple[int, int]]:
    """``start..end`` as at most ``parts`` adjoining ranges of equal size give or take one, none empty."""
    parts = min(parts, end - start)
    for part in range(parts):
        yield start + (end - start) * part // parts, start + (end - start) * (part + 1) // parts


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64, in place: every input bit reaches every output bit."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _bits(seed: int, lane: _Lane, counter: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Output number ``counter`` of the splitmix64 stream that (seed, lane) starts: 64 random bits each."""
    origin = _mix(np.array([(seed * len(_Lane) + lane) * _GOLDEN & _MASK], dtype=np.uint64))
    return _mix((counter.view(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN) + origin)


@lru_cache(maxsize=16)
def _zipf_cumulative(keys: int, skew: float) -> NDArray[np.float64]:
    cumulative = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)
    cumulative /= cumulative[-1]
    cumulative.setflags(write=False)
    return cumulative


@lru_cache(maxsize=16)
def _vocabulary(words: int, seed: int) -> pa.Array:
    """Distinct pronounceable words, the short ones first, in an order that the seed chooses."""
    vocabulary: list[str] = []
    syllables = 2
    while len(vocabulary) < words:
        of_this_length = len(_SYLLABLES) ** syllables
        shift = int(_bits(seed, _Lane.VOCABULARY, np.array([syllables]))[0])
        for rank in range(min(words - len(vocabulary), of_this_length)):
            # 48271 is prime to the number of syllables, so this is a permutation: no word comes twice.
            number = (rank * 48271 + shift) % of_this_length
            vocabulary.append("".join(_digits(number, syllables)))
        syllables += 1
    return pa.array(vocabulary)


def _digits(number: int, syllables: int) -> Iterator[str]:
    for _ in range(syllables):
        number, digit = divmod(number, len(_SYLLABLES))
        yield _SYLLABLES[digit]

"""What an app that sheds must have made of a topic: decided record by record, in plain Python.

A plain consumer tells what is in the topic, and each epoch's manifest which offsets it took and what share of them each
query got. The rest follows from the documented rule: a record is kept if the hash of its place is below the share.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from kept_accounts import kept
from shedding_app import IDS, IDS_MINIMUM, SLOW, SOURCE
from spark_hash import hash_bytes, hash_int, hash_long

from springtide.blocks.manifest import Manifest
from springtide.metrics.account import Account
from springtide.testing.topics import Record, consume

MINIMA = {name: minimum for name, (minimum, _) in SLOW.items()} | {IDS: IDS_MINIMUM}
"""By query."""
LOTS = 1 << 63
Bag = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Read:
    """A record of the topic."""

    partition: int
    offset: int
    lot: int
    row: dict[str, int] | None
    """None if it is malformed."""

    @classmethod
    def of(cls, topic: str, record: Record) -> "Read":
        place = hash_long(record.offset, hash_int(record.partition, hash_bytes(topic.encode())))
        lot = hash_long(place, hash_bytes(SOURCE.encode())) & (LOTS - 1)
        try:
            row = json.loads(record.value or b"")
        except ValueError:
            row = None
        return cls(record.partition, record.offset, lot, row)


def ends(manifest: Manifest, topic: str) -> dict[int, int]:
    """By partition: where an epoch ends."""
    return {int(partition): end for partition, end in json.loads(manifest.offsets[0])[topic].items()}


def check(root: Path, servers: str, topic: str) -> None:
    """Every epoch's account and every query's results are those of the records that were to be kept; none is left."""
    records: dict[int, list[Read]] = {}
    for record in consume(servers, topic):
        records.setdefault(record.partition, []).append(Read.of(topic, record))
    begins = dict.fromkeys(records, 0)
    sums: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in SLOW}
    for epoch, manifest in sorted(kept(root).items()):
        until = ends(manifest, topic)
        offered = [record for part in records for record in records[part][begins[part] : until[part]]]
        shares = {query: manifest.shedding.keep.get((SOURCE, f"{query}-step"), 1.0) for query in MINIMA}
        wanted = {query: [r for r in offered if r.lot < share * LOTS] for query, share in shares.items()}
        assert all(shares[query] >= MINIMA[query] for query in MINIMA), epoch
        assert manifest.account is not None
        _check_account(epoch, manifest.account, len(offered), wanted)
        assert published(root, IDS, epoch) == Counter((r.partition, r.offset, r.row["id"]) for r in good(wanted[IDS]))
        for query, so_far in sums.items():
            assert published(root, query, epoch) == _added(so_far, good(wanted[query])), (epoch, query)
        begins = until
    assert begins == {part: len(some) for part, some in records.items()}, "all of the topic was taken"


def _check_account(epoch: int, account: Account, offered: int, wanted: dict[str, list[Read]]) -> None:
    assert account.sources == {SOURCE: offered}, epoch
    assert account.malformed == max(dead(some) for some in wanted.values()), epoch
    assert {query.query for query in account.queries} == set(MINIMA)
    for query in account.queries:
        some = wanted[query.query]
        told = (query.offered, query.processed, query.shed, query.dead_letters)
        assert told == (offered, len(some) - dead(some), offered - len(some), dead(some)), (epoch, query)
    for step in account.steps:
        some = wanted[step.step.removesuffix("-step")]
        assert (step.rows_in, step.shed_rows) == (len(some) - dead(some), offered - len(some)), (epoch, step)


def good(records: Iterable[Read]) -> list[Any]:
    return [record for record in records if record.row is not None]


def dead(records: list[Read]) -> int:
    return len(records) - len(good(records))


def _added(so_far: dict[int, tuple[int, int]], records: Iterable[Any]) -> Bag:
    """What a slow step publishes of an epoch: the count and the sum of every key that had a row in it."""
    touched = set()
    for record in records:
        key = record.row["key"]
        n, total = so_far.get(key, (0, 0))
        so_far[key] = (n + 1, total + record.row["id"])
        touched.add(key)
    return Counter((key, *so_far[key]) for key in touched)


def published(root: Path, query: str, epoch: int) -> Bag:
    """The rows that a query has published of an epoch."""
    files = (root / query).glob(f"epoch={epoch}/*.parquet")
    return Counter(tuple(row.values()) for file in files for row in pq.ParquetFile(file).read().to_pylist())

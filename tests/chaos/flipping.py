"""Bits that flip in a block's file, and how to tell that no copy of a block was made from flipped ones."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from cluster_kit import Cluster

from springtide.blocks.block import BlockRef, checksum, decode, epoch_of
from springtide.blocks.manifest import Manifest

PLACES = ("header", "body", "footer")
"""Of an Arrow IPC file: its magic bytes, the rows, and what tells where they are."""
Rows = Counter[tuple[object, ...]]
Origin = tuple[str, int | None]
"""The step and the epoch of a run, which its copies have in their names, too."""


def flip(path: Path, place: str) -> None:
    """Flip a bit of a file. The file is replaced: who has mapped it keeps what it has checked."""
    data = bytearray(path.read_bytes())
    data[{"header": 2, "body": len(data) // 2, "footer": len(data) - 16}[place]] ^= 0x10
    new = path.with_suffix(".flipped")
    new.write_bytes(data)
    os.replace(new, path)


def runs_of(manifest: Manifest, worker: str) -> list[BlockRef]:
    """The runs of a manifest that a worker has written."""
    return [run for state in manifest.operators.values() for run in state.runs if run.worker == worker]


def is_right(path: Path, run: BlockRef) -> bool:
    """Whether a file is there and has the bytes that were promised."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return False
    return (len(data), checksum(data)) == (run.size_bytes, run.crc32)


def true_copies(cluster: Cluster) -> int:
    """How many copies on workers, of runs that are in the durable store, have no row but those of their runs.

    Those of other runs can't be told. For an app that has ended.
    """
    durable = by_origin((cluster.checkpoint / "blocks").glob("*.run.*"))
    found = 0
    for origin, parts in by_origin(cluster.local.glob("*/[a-z]*.part.*")).items():
        true = rows_of(durable.get(origin, ()))
        for part in parts if true else ():
            assert not rows_of([part]) - true, part
            found += 1
    return found


def by_origin(blocks: Iterable[Path]) -> dict[Origin, list[Path]]:
    found: dict[Origin, list[Path]] = defaultdict(list)
    for block in blocks:
        found[block.name.split(".")[0], epoch_of(block.name)].append(block)
    return found


def rows_of(blocks: Iterable[Path]) -> Rows:
    return Counter(tuple(row.values()) for block in blocks for row in decode(block.read_bytes()).to_pylist())

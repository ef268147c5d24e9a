"""A generation: the directory in which one driver keeps what is true.

Manifests, durable checkpoints, notes of what is to be repeated, Spark's own logs: all that a driver puts in place of
something else, or removes, is in a directory that no other driver writes to. A new driver takes over by copying what
the last one had. What a late predecessor does in its own directory since then, nobody will ever read.
"""

import json
import re

from springtide import faults
from springtide.blocks import durable, log
from springtide.blocks.fence import Fence
from springtide.blocks.store import Store
from springtide.blocks.within import Within

DIRECTORY = "generations"
OPENED = "opened.json"
"""In a generation's directory: all that it starts from is there."""
SPARK = "spark"
"""In a generation's directory: the logs of Spark's query."""
LOGS = (log.DIRECTORY, durable.DIRECTORY, durable.SHED, log.TORN)
"""Directories to be copied, in no order: each is put before anything relies on it."""
TRIES = 20
"""How often copying begins anew when the predecessor, which still writes, has removed what was to be copied."""

_NAME = re.compile(r"[0-9]{9,}")


def current(store: Store) -> Store:
    """Where the last driver of a checkpoint keeps what is true; for readers, and for who takes over."""
    for generation in sorted(_generations(store), reverse=True):
        if OPENED in store.list(_directory(generation)):
            return Within(store, _directory(generation))
    return store  # A new checkpoint, or one of a release that had no generations.


def open_generation(store: Store, fence: Fence) -> Store:
    """The directory of the driver that has just claimed the checkpoint, with all that its predecessor had."""
    own = Within(store, _directory(fence.generation))
    for left in reversed(range(TRIES)):
        before = current(store)
        store.remove(own.directory)
        try:
            _copy(before, own)
            break
        except FileNotFoundError:
            fence.check()
            if not left:
                raise
    faults.fire("generation.copied")
    told = {"generation": fence.generation, "after": "" if before is store else before.url.rpartition("/")[2]}
    own.put_if_absent(OPENED, json.dumps(told).encode())
    fence.check()
    _forget_others(store, fence.generation)
    return own


def _copy(before: Store, own: Within) -> None:
    """Spark's logs last: they may know more than the manifests, as after a crash, but not less."""
    _copy_names(before, own, "", [durable.REPLAY])
    for directory in LOGS:
        _copy_names(before, own, directory)
    _copy_names(before, own, SPARK, ["metadata"])
    for directory in ("offsets", "commits", *(f"sources/{name}" for name in before.list(f"{SPARK}/sources"))):
        _copy_names(before, own, f"{SPARK}/{directory}")


def _copy_names(before: Store, own: Within, directory: str, only: list[str] | None = None) -> None:
    there = before.list(directory)
    for name in there if only is None else [name for name in only if name in there]:
        path = f"{directory}/{name}" if directory else name
        own.store.copy(_in_root(before, path), f"{own.directory}/{path}")


def _in_root(store: Store, name: str) -> str:
    return f"{store.directory}/{name}" if isinstance(store, Within) else name


def _forget_others(store: Store, generation: int) -> None:
    """What earlier drivers had, and one that wakes up late may still write: nobody reads it any more."""
    for earlier in _generations(store):
        if earlier < generation:
            store.remove(_directory(earlier))
    for directory in (*LOGS, SPARK):
        store.remove(directory)
    store.delete([durable.REPLAY])


def _generations(store: Store) -> list[int]:
    return [int(name) for name in store.list(DIRECTORY) if _NAME.fullmatch(name)]


def _directory(generation: int) -> str:
    return f"{DIRECTORY}/{generation:09d}"

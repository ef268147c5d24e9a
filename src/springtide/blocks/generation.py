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
from springtide.blocks.store import Store, put_own
from springtide.blocks.sub_store import Within

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
    """Where the last driver of a checkpoint keeps what is true; for readers."""
    directory = _last_opened(store)
    return Within(store, directory) if directory else store


def open_generation(store: Store, fence: Fence) -> Store:
    """The directory of the driver that has just claimed the checkpoint, with all that its predecessor had."""
    own = _directory(fence.generation)
    for left in reversed(range(TRIES)):
        before = _last_opened(store)
        store.remove(own)
        try:
            _copy(store, before, own)
            break
        except FileNotFoundError:
            fence.check()
            if not left:
                raise
    faults.fire("generation.copied")
    told = {"generation": fence.generation, "after": before}
    put_own(store, _join(own, OPENED), json.dumps(told).encode())
    fence.check()
    _forget_others(store, fence.generation)
    return Within(store, own)


def _last_opened(store: Store) -> str:
    """The directory of the last generation that counts; none for a new checkpoint, or one without generations."""
    generations = map(_directory, sorted(_generations(store), reverse=True))
    return next((directory for directory in generations if OPENED in store.list(directory)), "")


def _copy(store: Store, before: str, own: str) -> None:
    """Spark's logs last: they may know more than the manifests, as after a crash, but not less."""
    _copy_names(store, before, own, "", only=durable.REPLAY)
    for directory in LOGS:
        _copy_names(store, before, own, directory)
    _copy_names(store, before, own, SPARK, only="metadata")
    sources = store.list(_join(before, SPARK, "sources"))
    for directory in ("offsets", "commits", *(_join("sources", name) for name in sources)):
        _copy_names(store, before, own, _join(SPARK, directory))


def _copy_names(store: Store, before: str, own: str, directory: str, only: str = "") -> None:
    for name in store.list(_join(before, directory)):
        if name == only or not only:
            store.copy(_join(before, directory, name), _join(own, directory, name))


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))


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

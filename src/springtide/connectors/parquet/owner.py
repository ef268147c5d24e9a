"""Whose a dataset is: the checkpoint that writes it, and the newest driver of that checkpoint.

Both are recorded by put-if-absent below `_springtide` in the dataset, which readers pass over.
"""

import json
import re

from springtide.blocks.errors import AlreadyThere, NewerFormat, TakenOver
from springtide.blocks.store import Store
from springtide.errors import SpringtideError

DIRECTORY = "_springtide"
LINEAGE = f"{DIRECTORY}/lineage.json"
FORMAT = 1

_EPOCH = re.compile(r"epoch=([0-9]+)")
_GENERATION = re.compile(r"generation-([0-9]{9,})")


class AnotherLineage(SpringtideError):
    """A dataset that another checkpoint writes."""

    def __init__(self, place: str, found: str, expected: str | None) -> None:
        super().__init__(place, found, expected)
        self.place, self.found, self.expected = place, found, expected

    def __str__(self) -> str:
        ours = "a new one" if self.expected is None else f"checkpoint {self.expected}"
        return (
            f"expected {self.place!r} to be empty or written by this app's checkpoint ({ours}), got the epochs of "
            f"checkpoint {self.found}: give the sink another path, or remove that directory"
        )


class UnknownEpochs(SpringtideError):
    """A dataset of an earlier release, which does not say whose it is, with epochs that this checkpoint has not had."""

    def __init__(self, place: str, last: int, epoch: int) -> None:
        super().__init__(place, last, epoch)
        self.place, self.last, self.epoch = place, last, epoch

    def __str__(self) -> str:
        text = (
            f"expected {self.place!r} to have no epoch from {self.epoch} on, as this checkpoint is about to publish "
            f"that one, got directories up to 'epoch={self.last}' from an earlier release, which did not note whose "
            "they are: give the sink another path, or remove the directory"
        )
        if self.last != self.epoch or self.epoch == 0:
            return text
        return f"{text}. If it is this app's own, removing 'epoch={self.last}' in it is enough: it is written again"


def check(store: Store, lineage: str | None) -> None:
    """Refuse a dataset that is not this checkpoint's, as far as can be told; None is a checkpoint without an epoch."""
    found = _recorded(store)
    if found is not None and found != lineage:
        raise AnotherLineage(store.url, found, lineage)
    if found is None and lineage is None and (last := _last_epoch(store)) >= 0:
        raise UnknownEpochs(store.url, last, 0)


def enter(store: Store, lineage: str, generation: int, epoch: int) -> None:
    """Take the dataset before an epoch is published; TakenOver if a newer driver has it."""
    found = _recorded(store)
    if found is None:
        last = _last_epoch(store)
        # A record comes before any epoch: another driver may have written both since we looked.
        found = _recorded(store) if last >= epoch else _record(store, lineage)
        if found is None:
            raise UnknownEpochs(store.url, last, epoch)
    if found != lineage:
        raise AnotherLineage(store.url, found, lineage)
    known = _generations(store)
    newest = max(known, default=0)
    if newest > generation:
        raise TakenOver(generation, f"the driver of generation {newest}")
    if newest < generation:
        # Of two drivers that come here at once both are noted, and the older one finds the other next time.
        store.put(_generation(generation), b"")
        store.delete(_generation(old) for old in known)


def _record(store: Store, lineage: str) -> str:
    """Note the lineage unless there is one by now; the one that counts."""
    try:
        store.put_if_absent(LINEAGE, json.dumps({"format": FORMAT, "lineage": lineage}).encode())
    except AlreadyThere:
        return str(_recorded(store))
    return lineage


def _recorded(store: Store) -> str | None:
    try:
        fields = json.loads(store.get(LINEAGE))
    except FileNotFoundError:
        return None
    if fields["format"] != FORMAT:
        raise NewerFormat(f"{LINEAGE!r} in {store.url!r}", fields["format"], FORMAT)
    return str(fields["lineage"])


def _last_epoch(store: Store) -> int:
    found = (_EPOCH.fullmatch(name) for name in store.list(""))
    return max((int(match[1]) for match in found if match), default=-1)


def _generations(store: Store) -> list[int]:
    found = (_GENERATION.fullmatch(name) for name in store.list(DIRECTORY))
    return [int(match[1]) for match in found if match]


def _generation(number: int) -> str:
    return f"{DIRECTORY}/generation-{number:09d}"

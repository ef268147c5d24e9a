"""Garbage collection: what no retained manifest names, and no running epoch can name, goes."""

from collections.abc import Set
from dataclasses import dataclass

from springtide import faults
from springtide.blocks.block import DIRECTORY, epoch_of
from springtide.blocks.log import DIRECTORY as MANIFESTS
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, TornManifest
from springtide.blocks.store import Store
from springtide.ids import Epoch

RETAINED = 2
"""Manifests kept: the last one, and the one before it in case the last is torn."""

SWEEP_EVERY = 100
"""Epochs between two sweeps for orphans of failed attempts."""


@dataclass(frozen=True)
class Garbage:
    """What one collection removes: blocks first, then the manifests that named them."""

    blocks: tuple[str, ...] = ()
    manifests: tuple[Epoch, ...] = ()


class Collector:
    """Finds garbage after each commit, and orphans of crashed attempts in a sweep."""

    def __init__(self, log: ManifestLog, blocks: Store | None = None) -> None:
        self.log = log
        self.store = blocks or log.store
        """Where the blocks are."""
        self._retained: list[Manifest] = []
        self._waiting = set[str]()
        """Blocks that no manifest names any more, and that somebody still needs."""
        self._next_sweep = SWEEP_EVERY - 1

    def start(self, head: Manifest | None) -> Garbage:
        """Before the first epoch, or the first after going back: remember what is live, sweep up what others left."""
        self._retained, self._waiting, self._next_sweep = [], set(), SWEEP_EVERY - 1
        if head is None:
            return Garbage()
        self._retained = [*self._before(head), head]
        self._next_sweep = _sweep_after(head.epoch)
        self.log.fence.check()
        self.store.tidy(DIRECTORY)
        self.log.store.tidy(MANIFESTS)
        old = [e for e in self.log.epochs() if e < self._retained[0].epoch]
        return self._remove(Garbage(self._orphans(head.epoch), tuple(old)))

    def committed(self, manifest: Manifest, pinned: Set[str] = frozenset(), *, depositing: bool = False) -> Garbage:
        """After a commit and its publication: what only manifests beyond the retained ones needed.

        Pinned blocks stay until they are pinned no longer. Blocks that are being deposited have names that nobody knows
        yet: the sweep for orphans waits until no deposit is under way.
        """
        self._retained.append(manifest)
        gone, self._retained = self._retained[:-RETAINED], self._retained[-RETAINED:]
        live = set().union(*(m.blocks() for m in self._retained))
        dead = set().union(*(m.blocks() for m in gone)) - live if gone else set()
        if manifest.epoch >= self._next_sweep and not depositing:
            dead.update(self._orphans(manifest.epoch))
            self._next_sweep = _sweep_after(manifest.epoch)
        dead |= self._waiting - live
        self._waiting = dead & pinned
        dead -= pinned
        return self._remove(Garbage(tuple(sorted(dead)), tuple(m.epoch for m in gone)))

    def release(self, pinned: Set[str]) -> None:
        """No epoch is to come: what had to wait, and is not pinned any more, goes."""
        live = set[str]().union(*(m.blocks() for m in self._retained))
        self._remove(Garbage(tuple(sorted(self._waiting - live - pinned))))

    def _orphans(self, head: Epoch) -> tuple[str, ...]:
        """Blocks of committed epochs that no retained manifest names.

        Blocks of later epochs stay: a delayed write of the epoch in flight may be among them. What is there is looked
        up before the fence is: a successor's blocks cannot be among it.
        """
        live = set().union(*(m.blocks() for m in self._retained))
        found = [(name, epoch_of(name)) for name in self.store.list(DIRECTORY)]
        self.log.fence.check()
        return tuple(n for n, epoch in found if n not in live and epoch is not None and epoch <= head)

    def _before(self, head: Manifest) -> list[Manifest]:
        try:
            return [self.log.read(Epoch(head.epoch - 1))]
        except (FileNotFoundError, TornManifest):
            return []

    def _remove(self, garbage: Garbage) -> Garbage:
        if garbage.blocks or garbage.manifests:
            faults.fire("gc.delete", self._retained[-1].epoch)
        self.store.delete(f"{DIRECTORY}/{name}" for name in garbage.blocks)
        self.log.forget(list(garbage.manifests))
        return garbage


def _sweep_after(epoch: int) -> int:
    """The epoch of the next sweep."""
    return (epoch + 1) // SWEEP_EVERY * SWEEP_EVERY + SWEEP_EVERY - 1

"""The manifest log: one manifest an epoch, each committed once, each naming its parent."""

import re
from contextlib import suppress

from springtide import faults
from springtide.blocks.errors import AlreadyThere, LineageBroken, ManifestConflict, StoreFailed
from springtide.blocks.fence import UNFENCED, Fence
from springtide.blocks.manifest import Manifest, TornManifest
from springtide.blocks.store import Store
from springtide.ids import Epoch

DIRECTORY = "manifests"
TORN = "torn"

_NAME = re.compile(r"([0-9]{9,})\.json")


class ManifestLog:
    """Reads and commits manifests, in the directory of one driver; who only reads needs no fence."""

    def __init__(self, store: Store, directory: str = DIRECTORY, fence: Fence = UNFENCED) -> None:
        self.store, self.directory, self.fence = store, directory, fence

    def check_readable(self) -> None:
        """NewerFormat if a later release wrote the last manifest; writes nothing."""
        for epoch in self.epochs()[-1:]:
            with suppress(TornManifest):
                self.read(epoch)

    def head(self) -> Manifest | None:
        """The last committed manifest. A torn last one does not count; it is set aside."""
        for epoch in reversed(self.epochs()):
            try:
                return self.read(epoch)
            except TornManifest:
                self._set_aside(epoch)
        return None

    def epochs(self) -> list[Epoch]:
        """The epochs that have a manifest, oldest first."""
        found = (_NAME.fullmatch(name) for name in self.store.list(self.directory))
        return sorted(Epoch(int(match[1])) for match in found if match)

    def read(self, epoch: Epoch) -> Manifest:
        return Manifest.decode(self.store.get(self._path(epoch)))

    def written_id(self, epoch: Epoch) -> str:
        """The id that the release that wrote a manifest gave it; ours may hash a content with more fields."""
        return self.store.get(self._path(epoch)).decode().rstrip("\n").rpartition("\n")[2]

    def commit(self, manifest: Manifest, parent: Manifest | None) -> None:
        """Make an epoch true. Idempotent: committing the same manifest again is fine.

        A call that failed but took effect is recognised by reading back what is there. TakenOver if a later driver may
        have missed it: then it is not true, unless that driver says so.
        """
        self._put(manifest, parent)
        faults.fire("manifest.landed", manifest.epoch)
        self.fence.check()

    def _put(self, manifest: Manifest, parent: Manifest | None) -> None:
        expected = Epoch(0) if parent is None else Epoch(parent.epoch + 1)
        if manifest.epoch != expected or manifest.parent != ("" if parent is None else parent.id):
            raise LineageBroken(manifest.epoch, expected - 1)
        try:
            with faults.around("manifest.put", manifest.epoch):
                self.store.put_if_absent(self._path(manifest.epoch), manifest.encode())
        except AlreadyThere:
            self._check_same(manifest)
        except OSError as error:
            if self._landed(manifest):
                return
            if isinstance(error, StoreFailed):
                raise
            raise StoreFailed("write", self._path(manifest.epoch), str(error)) from error

    def forget(self, epochs: list[Epoch]) -> None:
        """Remove old manifests, after the blocks only they needed."""
        self.store.delete(self._path(epoch) for epoch in epochs)

    def reset(self, manifest: Manifest) -> None:
        """Put a manifest in place of the one of its epoch: the same state, in other blocks."""
        self.store.put(self._path(manifest.epoch), manifest.encode())

    def _landed(self, manifest: Manifest) -> bool:
        try:
            self._check_same(manifest)
        except (OSError, TornManifest):
            return False
        return True

    def _check_same(self, manifest: Manifest) -> None:
        there = self.read(manifest.epoch)
        if there.id != manifest.id:
            raise ManifestConflict(manifest.epoch, manifest.id, there.id)

    def _set_aside(self, epoch: Epoch) -> None:
        """Keep a torn manifest for people to look at, and free its place."""
        path = self._path(epoch)
        self.store.put(f"{TORN}/{epoch:09d}.json", self.store.get(path))
        self.store.delete([path])

    def _path(self, epoch: Epoch) -> str:
        return f"{self.directory}/{epoch:09d}.json"

"""A Parquet dataset in directories `epoch=N`, of one checkpoint."""

from dataclasses import dataclass

from springtide.blocks.patience import patiently
from springtide.blocks.store import LocalStore, open_store
from springtide.confidential import Discreet, remember_url
from springtide.connectors.parquet import objects, owner
from springtide.connectors.parquet.directory import Directory
from springtide.dataflow.sink_spec import EpochOutput, SinkSpec


@dataclass(frozen=True, repr=False)
class Parquet(Discreet, SinkSpec):
    """A Parquet dataset. On a disk an epoch appears whole and stays as it is; an epoch without rows does not appear."""

    path: str
    stage: str | None = None
    """Where epochs wait until they are whole, if not beside the dataset."""

    def __post_init__(self) -> None:
        remember_url(self.path)

    @property
    def place(self) -> str:
        """Where its rows go, the same for every way to write that."""
        store = open_store(self.path)
        return str(self._directory(store).root) if isinstance(store, LocalStore) else store.url

    def check(self, lineage: str | None) -> None:
        """Raises an error if the dataset is another checkpoint's, or has no place for its stage."""
        store = open_store(self.path)
        owner.check(store, lineage)
        if isinstance(store, LocalStore):
            self._directory(store).check()

    def publish(self, output: EpochOutput) -> None:
        """A disk or store that is away for a while is waited for."""
        patiently(lambda: self._publish(output))

    def _publish(self, output: EpochOutput) -> None:
        store = open_store(self.path)
        owner.enter(store, output.lineage, output.generation, output.epoch)
        if isinstance(store, LocalStore):
            self._directory(store).publish(output)
        else:
            objects.publish(store, output)

    def _directory(self, store: LocalStore) -> Directory:
        # A relative path means another place on a worker, so workers get absolute ones.
        return Directory.at(store.url, self.stage)


def parquet(path: str, *, stage: str | None = None) -> Parquet:
    """A plain Parquet dataset with the epoch as a column, at a path or an fsspec URL.

    On a disk each epoch appears whole, in one step: workers write it to `stage` first, by default a directory
    `.NAME.springtide` beside the dataset, which must be on the same file system. In an object store a reader may see
    the newest epoch part by part.
    """
    return Parquet(path, stage)

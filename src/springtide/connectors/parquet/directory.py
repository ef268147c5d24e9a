"""Epochs on a local or shared disk: each appears whole, by the rename of a directory, and never changes after that.

Workers write the parts of an epoch to a stage beside the dataset, as there are readers that find every file below
a dataset, however hidden its name is. Each attempt to publish has a stage of its own. What attempts that were cut
short left is moved out of the way before it is removed, so that nobody can make half of it visible.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from springtide import faults
from springtide.blocks.errors import StoreFailed, TakenOver
from springtide.blocks.patience import patiently
from springtide.blocks.store import sync_directory
from springtide.blocks.store_errors import failed, may_mend
from springtide.connectors.parquet.part import encoded, part_name
from springtide.dataflow.sink_spec import EpochOutput
from springtide.errors import SpringtideError

WRITTEN, WHOLE = "written", "whole"
"""In an attempt's stage: what workers have written, and the directory that will be the epoch."""
REMOVED = "removed-"

_ATTEMPT = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})-([0-9]+)-[0-9]+-[0-9a-f]{16}")


class NoStage(SpringtideError):
    """There is no place from which an epoch could be moved into its dataset in one step."""

    def __init__(self, dataset: str, stage: str, reason: str) -> None:
        super().__init__(dataset, stage, reason)
        self.dataset, self.stage, self.reason = dataset, stage, reason

    def __str__(self) -> str:
        return (
            f"expected {self.stage!r} to be a directory, or to be made as one, on the same file system as the dataset "
            f"{self.dataset!r}, got: {self.reason}. Name another one with sinks.parquet(..., stage=…); if there is "
            f"none outside of the dataset, {os.path.join(self.dataset, '_stage')!r} serves readers that pass over "
            "names with '_' or read 'epoch=*/*.parquet'"
        )


@dataclass(frozen=True)
class Directory:
    """A dataset on a disk, and the stage of its epochs."""

    root: Path
    stage: Path

    @classmethod
    def at(cls, path: str, stage: str | None) -> "Directory":
        """The dataset at a path, by default with its stage beside it."""
        root = Path(os.path.realpath(path))
        return cls(root, root.with_name(f".{root.name}.springtide") if stage is None else Path(os.path.realpath(stage)))

    def check(self) -> None:
        """Raises NoStage if the stage is on another file system than the dataset; makes nothing."""
        if _device(self.root) != _device(self.stage):
            raise NoStage(str(self.root), str(self.stage), "a directory on another file system")

    def publish(self, output: EpochOutput) -> None:
        """Make an epoch's rows visible unless they are."""
        epoch = self.root / f"epoch={output.epoch}"
        if not _filled(epoch):
            self._appear(epoch, output)
        sync_directory(self.root)
        self._tidy(output.lineage, output.generation)

    def _appear(self, epoch: Path, output: EpochOutput) -> None:
        attempt = self._attempt(output)
        try:
            parts = output.each_part(WritePart(str(attempt), output.epoch))
            for part in parts:
                os.rename(attempt / WRITTEN / str(part), attempt / WHOLE / part_name(part))
            sync_directory(attempt / WHOLE)
            faults.fire("publish.staged", output.epoch)
            if parts:
                os.rename(attempt / WHOLE, epoch)
        except Exception as error:
            if _filled(epoch):
                return  # Another driver was faster, and the rows are the same.
            if not attempt.exists():
                raise TakenOver(output.generation, "") from error
            if isinstance(error, OSError) and error.errno == errno.EXDEV:
                raise NoStage(str(self.root), str(self.stage), "a directory on another file system") from error
            raise

    @property
    def _name(self) -> str:
        """Of this dataset, in a stage that several may share."""
        return _hash(str(self.root))

    def _attempt(self, output: EpochOutput) -> Path:
        """A stage of its own for one attempt."""
        name = f"{self._name}-{_hash(output.lineage)}-{output.generation}-{output.epoch}-{secrets.token_hex(8)}"
        path = self.stage / name
        try:
            self.stage.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            (path / WRITTEN).mkdir()
            (path / WHOLE).mkdir()
        except OSError as error:
            if may_mend(error) and error.errno not in (errno.EEXIST, errno.ENOTDIR):
                raise
            raise NoStage(str(self.root), str(self.stage), str(error)) from error
        return path

    def _tidy(self, lineage: str, generation: int) -> None:
        """Remove the stages of this driver, of earlier ones, and of checkpoints that had the dataset before."""
        with suppress(FileNotFoundError):
            for path in self.stage.iterdir():
                attempt = _ATTEMPT.fullmatch(path.name)
                ours = attempt is not None and attempt[1] == self._name
                if attempt and ours and (attempt[2] != _hash(lineage) or int(attempt[3]) <= generation):
                    gone = path.with_name(f"{REMOVED}{secrets.token_hex(8)}")
                    with suppress(FileNotFoundError):  # Another driver tidies too.
                        path.rename(gone)
                        shutil.rmtree(gone, ignore_errors=True)
                elif path.name.startswith(REMOVED):
                    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class WritePart:
    """Write one part to an attempt's stage; runs on a worker. It makes no directory: one that is gone is given up."""

    attempt: str
    epoch: int

    def __call__(self, part: int, rows: pa.Table) -> None:
        path, data = Path(self.attempt, WRITTEN, str(part)), encoded(rows)
        patiently(lambda: self._write(path, data))
        faults.fire("publish.part", self.epoch)

    def _write(self, path: Path, data: memoryview) -> None:
        # Twins of a task write one part: each under a name of its own first.
        own = path.with_name(f"{secrets.token_hex(8)}.tmp")
        try:
            with open(own, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(own, path)
        except FileNotFoundError as error:
            reason = "its stage is not there; the driver and every worker must see it at the same path"
            raise StoreFailed("write", str(path), reason, final=True) from error
        except OSError as error:
            own.unlink(missing_ok=True)
            raise failed("write", str(path), error) from error


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _filled(directory: Path) -> bool:
    """Whether an epoch is there: it is never there without a part."""
    try:
        return any(directory.iterdir())
    except FileNotFoundError:
        return False


def _device(path: Path) -> int:
    """The file system that a path is on, or will be."""
    while not path.exists():
        path = path.parent
    return path.stat().st_dev

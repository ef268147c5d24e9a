"""What a worker removes before it works: files that nobody needs any more."""

import shutil
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from springtide.blocks.local import LocalBlocks
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, WorkerId


@dataclass(frozen=True)
class Leftovers:
    """What earlier drivers may have left in a worker's directory: all up to an epoch that is not needed.

    Every task of a driver's first epoch clears it, and its own blocks are safe, whatever their epochs.
    """

    epoch: Epoch
    needed: Set[str]


@dataclass(frozen=True)
class Housekeeping:
    """Told by the driver with every epoch."""

    forget: tuple[str, ...] = ()
    """Blocks whose local copies are of no use."""
    departed: tuple[WorkerId, ...] = ()
    """Workers that are gone; on the machine where they were, somebody has to clear their directories."""
    leftovers: Leftovers | None = None

    def __call__(self, storage: Storage, blocks: LocalBlocks) -> None:
        blocks.forget(list(self.forget))
        if self.leftovers is not None:
            blocks.tidy(self.leftovers.epoch, self.leftovers.needed)
        for worker in self.departed:
            if (directory := Path(storage.local, worker)).exists():
                shutil.rmtree(directory, ignore_errors=True)

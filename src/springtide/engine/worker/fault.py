"""What a worker tells the driver of a block that it should have and has not, or not with the right bytes."""

from dataclasses import dataclass

from springtide.blocks.block import BlockRef
from springtide.blocks.errors import BlockCorrupt, Unsound
from springtide.blocks.local import ABSENT
from springtide.ids import WorkerId


@dataclass(frozen=True)
class Fault:
    block: BlockRef
    worker: WorkerId
    reason: str

    def __str__(self) -> str:
        where = f"worker {self.worker}, " if self.worker else ""
        return f"{where}block {self.block.name!r}: {self.reason}"


def faults_of(block: BlockRef, worker: str, error: Unsound) -> list[Fault]:
    """What is to be told of a block that could not be used; nothing if another worker wrote it, and it is not here."""
    if error.reason == ABSENT and block.worker != worker:
        return []
    return [Fault(block, WorkerId(worker), error.reason)]


def corrupt(run: BlockRef, faults: tuple[Fault, ...]) -> BlockCorrupt:
    """The error for a run of which no copy could be used."""
    tried = tuple(map(str, faults)) or ("its worker did not answer",)
    return BlockCorrupt(run.name, run.operator, str(run.slices) or "-", run.epoch, tried)

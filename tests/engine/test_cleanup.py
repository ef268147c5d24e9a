"""Housekeeping of a driver's first epoch: every task clears, and what came meanwhile stays."""

from pathlib import Path

import pyarrow as pa

from springtide.blocks.block import PART, RUN, BlockRef
from springtide.blocks.leftovers import driver_name
from springtide.blocks.local import LocalBlocks
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.engine.worker.cleanup import Housekeeping, Leftovers
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, InstanceId, PlanVersion


def write(blocks: LocalBlocks, kind: str, epoch: int = 40) -> BlockRef:
    return blocks.write(
        pa.table({"n": [1]}),
        operator="counts",
        epoch=Epoch(epoch),
        instance=InstanceId(0),
        kind=kind,
        slices=SliceSet.parse("0-3"),
    )


def storage(root: Path, generation: int) -> Storage:
    """As a driver hands it to its tasks; they run where nothing is placed, and share one directory."""
    return Storage(str(root / "local"), str(root / "durable"), driver=driver_name(generation))


def test_a_replica_that_comes_beside_the_first_epoch_survives_its_later_tasks(tmp_path: Path) -> None:
    before = storage(tmp_path, 1).open()
    run, stale = write(before, RUN), write(before, PART)
    head = Manifest("app", Epoch(50), "", PlanVersion(1), 1, {"counts": OperatorState((run,))})
    mine = storage(tmp_path, 2)
    housekeeping = Housekeeping(leftovers=Leftovers(head.epoch, head.blocks()))
    housekeeping(mine, mine.open())  # The first level of the dataflow.
    replica = write(mine.open(), PART)  # A peer checkpoint beside it.
    housekeeping(mine, mine.open())  # The second level, or the first once more.
    left = {path.name for path in (tmp_path / "local").glob("*.arrow")}
    assert left == {run.name, replica.name}
    assert stale.name not in left


def test_a_replica_may_come_before_the_first_task_of_the_first_epoch(tmp_path: Path) -> None:
    stale = write(storage(tmp_path, 1).open(), PART)
    mine = storage(tmp_path, 2)
    replica = write(mine.open(), PART)
    Housekeeping(leftovers=Leftovers(Epoch(50), frozenset()))(mine, mine.open())
    assert {path.name for path in (tmp_path / "local").glob("*.arrow")} == {replica.name} != {stale.name}

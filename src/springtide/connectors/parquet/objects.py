"""Epochs in an object store, which has no rename: a part has the same rows and the same name whoever writes it.

So a driver that was taken over replaces parts by what they were. Readers may see an epoch part by part while it is
being published.
"""

import re
from dataclasses import dataclass

import pyarrow as pa

from springtide import faults
from springtide.blocks.patience import patient_store
from springtide.blocks.store import Store
from springtide.connectors.parquet.part import encoded, part_name
from springtide.dataflow.sink_spec import EpochOutput

PARTS = 4
"""Of an epoch, by the hash of the key. The same rows must give the same parts, so this is no option."""

_PART = re.compile(r"part-\d{5,}\.parquet")


def publish(store: Store, output: EpochOutput) -> None:
    """Write an epoch's parts, and remove what else is there."""
    directory = f"epoch={output.epoch}"
    written = {part_name(part) for part in output.each_part(WritePart(store.url, output.epoch), PARTS)}
    stale = [name for name in store.list(directory) if _PART.fullmatch(name) and name not in written]
    store.delete(f"{directory}/{name}" for name in stale)


@dataclass(frozen=True)
class WritePart:
    """Write one part; runs on a worker."""

    store: str
    epoch: int

    def __call__(self, part: int, rows: pa.Table) -> None:
        patient_store(self.store).put(f"epoch={self.epoch}/{part_name(part)}", encoded(rows))
        faults.fire("publish.part", self.epoch)

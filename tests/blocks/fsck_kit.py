"""A sound checkpoint with everything in it, made from the block modules alone."""

import json
import re
import struct
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from springtide import codec
from springtide.blocks.block import OUTPUT, RUN, BlockRef
from springtide.blocks.durable import REPLAY, DurableLog
from springtide.blocks.finding import Examination
from springtide.blocks.fsck import Fsck, OnBlock
from springtide.blocks.generation import LOGS as LOG_DIRECTORIES
from springtide.blocks.generation import OPENED, SPARK
from springtide.blocks.local import LocalBlocks
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore, Store
from springtide.blocks.sub_store import Within
from springtide.ids import Epoch, InstanceId, PlanVersion
from springtide.metrics.account import Account
from springtide.metrics.report import EpochReport, Phases
from springtide.plan.shedding import Shedding

LOGS = {"reports": partial(codec.loads, EpochReport), "ledger": json.loads}
EPOCHS = 3
OWN = "generations/000000002"


def examine(store: Store, on_block: OnBlock = lambda done, of, size: None) -> Examination:
    return Fsck(store, LOGS, on_block)()


class Checkpoint:
    """An app's checkpoint after some epochs, each of which left a run and an output, and each of which was reported."""

    def __init__(self, root: Path, *, flat: bool = False) -> None:
        """A flat one has no directory for each driver: an earlier release made it."""
        self.store = LocalStore(root / "checkpoint")
        self.own: Store = self.store if flat else Within(self.store, OWN)
        """The driver's directory."""
        if not flat:
            self.own.put(OPENED, b"{}")
        self._blocks = LocalBlocks(root / "local", self.store, keep=False)
        self.log = ManifestLog(self.own)
        self.manifests: list[Manifest] = []
        self._pinned = set[str]()
        AppRecord("tide", 8, {}, ("rows",)).write(self.store)
        self.put_spark("metadata", json.dumps({"id": "a-b-c"}))
        self.store.put("drivers/000000001.json", json.dumps({"host": "here", "beat": 3}).encode())
        self.store.put("ledger/000000000.jsonl", b'{"number": 1}\n{"number": 2}\n')
        for _ in range(EPOCHS):
            self.run()

    @property
    def head(self) -> Manifest:
        return self.manifests[-1]

    def run(self, *, done: bool = True) -> Manifest:
        """One epoch more; the last two manifests stay, with their blocks."""
        parent = self.manifests[-1] if self.manifests else None
        epoch = Epoch(len(self.manifests))
        runs = (*(parent.operators["counts"].runs[-1:] if parent else ()), self.block(epoch, RUN))
        manifest = Manifest(
            "tide",
            epoch,
            "" if parent is None else parent.id,
            PlanVersion(1),
            1,
            {"counts": OperatorState(runs, keys=9)},
            {"counts": (self.block(epoch, OUTPUT),)},
            (f'{{"row":{epoch}}}',),
            account=Account({"rows": 5}),
        )
        self.put_spark(f"offsets/{epoch}", f'v1\n{{"batchWatermarkMs":0}}\n{{"row":{epoch}}}')
        self.log.commit(manifest, parent)
        self.manifests.append(manifest)
        if done:
            self.put_spark(f"commits/{epoch}", 'v1\n{"nextBatchWatermarkMs":0}')
        report = EpochReport("tide", epoch, 1.0, 1, False, 5, 5, None, None, 0, Phases())
        before = self.store.get("reports/000000000.jsonl") if epoch else b""
        self.store.put("reports/000000000.jsonl", before + f"{codec.dumps(report)}\n".encode())
        self.collect()
        return manifest

    def collect(self) -> None:
        """Forget what only manifests before the last two needed."""
        live = set[str]().union(*(m.blocks() for m in self.manifests[-2:]), self._pinned)
        gone = set[str]().union(*(m.blocks() for m in self.manifests[:-2])) - live
        self.store.delete(f"blocks/{name}" for name in gone)
        self.log.forget([m.epoch for m in self.manifests[:-2]])

    def block(self, epoch: Epoch, kind: str, rows: int = 4) -> BlockRef:
        table = pa.table({"key": list(range(rows)), "n": [int(epoch)] * rows})
        return self._blocks.write(table, operator="counts", epoch=epoch, instance=InstanceId(0), kind=kind)

    def put_spark(self, name: str, text: str) -> None:
        """A file of Spark's log, with the checksum that Hadoop puts beside it."""
        directory, _, last = f"spark/{name}".rpartition("/")
        data = text.encode()
        self.own.put(f"{directory}/{last}", data)
        crc = b"crc\0" + struct.pack(">II", 512, zlib.crc32(data))
        self.own.put(f"{directory}/.{last}.crc", crc)

    def where(self, name: str) -> str:
        """The name in the checkpoint of something that a driver keeps in its own directory, or beside it."""
        first = re.split(r"[/,]", name)[0]
        own = isinstance(self.own, Within) and first in (*LOG_DIRECTORIES, SPARK, REPLAY)
        return f"{OWN}/{name}" if own else name

    def path(self, name: str) -> Path:
        return self.store.root / self.where(name)

    def make_durable(self) -> Manifest:
        """From now on the last epoch is a durable checkpoint, and what comes after it is on workers alone."""
        DurableLog(self.own).commit(self.head)
        self._pinned = self.head.state_blocks()
        return self.head

    def run_on_workers(self) -> Manifest:
        """An epoch whose state is not in the durable store."""
        manifest = self.run()
        own = [run for run in manifest.operators["counts"].runs if run.epoch == manifest.epoch]
        self.store.delete(run.path for run in own)
        self.manifests[-1] = replace(manifest, durable=False)
        self.log.reset(self.manifests[-1])
        DurableLog(self.own).note_shed(manifest.epoch, Shedding({("rows", "counts"): 0.5}))
        return self.manifests[-1]

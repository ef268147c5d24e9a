"""Durable checkpoints of the state, further apart than epochs, and what is repeated after going back to one.

With an interval, an epoch's runs stay on their workers, and its manifest says that they are not durable. A
durable checkpoint is a manifest of its own, all of whose runs are in the durable store. If every copy of some
state is lost, the app goes back to it and repeats the epochs since, each from the very offsets it had.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from springtide import codec
from springtide.blocks.fence import UNFENCED, Fence
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, TornManifest
from springtide.blocks.store import Store
from springtide.ids import Epoch
from springtide.plan.shedding import Shedding

DIRECTORY = "durable"
REPLAY = "replay.json"
SHED = "shed"


@dataclass(frozen=True)
class Replay:
    """Epochs to be repeated, oldest first."""

    committed: int
    """The last epoch that was true when the app went back; every sink has all epochs before it."""
    entries: Mapping[Epoch, str]
    """By epoch: Spark's log entry with its offsets."""
    shedding: Mapping[Epoch, Shedding] = field(default_factory=dict)
    """By epoch that was true and shed something: its shed rates, so that the same rows are shed again."""

    def encode(self) -> bytes:
        shedding = {epoch: rates.to_json() for epoch, rates in self.shedding.items()}
        return codec.dumps({**vars(self), "shedding": shedding}, sort_keys=True).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Replay":
        fields = json.loads(data)
        shedding = {epoch: Shedding.from_json(rates) for epoch, rates in fields.get("shedding", {}).items()}
        return codec.convert(cls, {**fields, "shedding": shedding})


class DurableLog:
    """The durable checkpoints in a driver's directory: the last one counts. Who only reads needs no fence."""

    def __init__(self, store: Store, fence: Fence = UNFENCED) -> None:
        self.store, self.fence = store, fence
        self._log = ManifestLog(store, DIRECTORY, fence)

    def last(self) -> Manifest | None:
        """The last durable checkpoint that is whole."""
        for epoch in reversed(self._log.epochs()):
            with suppress(TornManifest):
                return self._log.read(epoch)
        return None

    def commit(self, manifest: Manifest) -> None:
        """From now on the app can go back to this one; earlier ones are of no use any more."""
        self._log.reset(replace(manifest, durable=True))
        self.fence.check()  # A successor that has not seen it goes back to an earlier one, which must stay then.
        self._log.forget([epoch for epoch in self._log.epochs() if epoch != manifest.epoch])
        self.store.delete(f"{SHED}/{epoch:09d}.json" for epoch in self._shed() if epoch <= manifest.epoch)

    def note_shed(self, epoch: Epoch, rates: Shedding) -> None:
        """Remember what an epoch sheds, before it is true: manifests are forgotten sooner than it may be repeated."""
        self.store.put(f"{SHED}/{epoch:09d}.json", json.dumps(rates.to_json()).encode())

    def shed_since(self, after: int) -> dict[Epoch, Shedding]:
        """By epoch after one that has shed anything: its rates."""
        later = [epoch for epoch in self._shed() if epoch > after]
        return {e: Shedding.from_json(json.loads(self.store.get(f"{SHED}/{e:09d}.json"))) for e in later}

    def _shed(self) -> list[Epoch]:
        return sorted(Epoch(int(name[:-5])) for name in self.store.list(SHED) if name[:-5].isdigit())

    def clear(self) -> None:
        """Every epoch is durable: there is nothing to go back to."""
        self._log.forget(self._log.epochs())

    def replay(self) -> Replay | None:
        """What is still to be repeated."""
        try:
            return Replay.decode(self.store.get(REPLAY))
        except FileNotFoundError:
            return None

    def note(self, replay: Replay) -> None:
        """Remember what is to be repeated, before going back: a crash or a successor then changes nothing."""
        self.store.put(REPLAY, replay.encode())
        self.fence.check()

    def go_back(self, log: ManifestLog) -> Manifest | None:
        """Make the last durable checkpoint the head of the manifest log; None if that is the very beginning."""
        base = self.last()
        if base is not None:
            log.reset(base)
        log.forget([epoch for epoch in reversed(log.epochs()) if base is None or epoch > base.epoch])
        return base

    def repeated(self) -> None:
        """All is repeated; the app goes on."""
        self.store.delete([REPLAY])

"""The manifest: the driver's record of one epoch, and the only thing that makes blocks count."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from springtide import codec
from springtide.blocks.block import BlockRef
from springtide.blocks.errors import NewerFormat
from springtide.blocks.slice_set import SliceSet
from springtide.errors import BadValue
from springtide.ids import Epoch, PlanVersion, SliceId
from springtide.metrics.account import Account
from springtide.plan.shedding import NOTHING, Shedding

FORMAT = 7

ONE_INPUT_UNTIL = 6
"""Earlier formats have a single newest event time for each step, or null."""


class TornManifest(BadValue):
    """The bytes are not a whole manifest: a write was cut short, or the medium failed."""


@dataclass(frozen=True)
class Pending:
    """An epoch that stalled slices have not seen yet: their rows, and where event time stood."""

    epoch: Epoch
    slices: SliceSet
    watermark_us: int
    previous_watermark_us: int
    block: BlockRef | None = None
    """The rows; None if there were none."""

    def without(self, slices: frozenset[SliceId]) -> "Pending | None":
        """The same for fewer slices; None if for none."""
        left = self.slices - slices
        return replace(self, slices=SliceSet.of(left)) if left else None


@dataclass(frozen=True)
class OperatorState:
    """A keyed operator's state after an epoch: its runs, oldest first, and its event time."""

    runs: tuple[BlockRef, ...] = ()
    keys: int = 0
    newest_us: tuple[int, ...] = ()
    """By input: the newest event time that any row has had."""
    watermark_us: int | None = None
    pending: tuple[Pending, ...] = ()
    """Epochs that stalled slices have still to see, oldest first."""
    seen_us: tuple[int, ...] = ()
    """By input: the wall clock of the last epoch that had rows of it."""
    due_us: int | None = None
    """When the next of its keys expires; None if that is not known, as rows have come since it was."""

    def owed(self) -> frozenset[SliceId]:
        """The slices that have epochs still to see."""
        return SliceSet.union_of(p.slices for p in self.pending)

    def settled(self, slices: frozenset[SliceId]) -> "OperatorState":
        """The state after some slices have seen all their epochs."""
        left = (p.without(slices) for p in self.pending)
        return replace(self, pending=tuple(p for p in left if p is not None))

    def replaced(self, gone: Mapping[str, frozenset[SliceId]], new: BlockRef | None) -> "OperatorState":
        """The state after one instance put a new run in place of some slices of its runs."""
        kept = (run.without(gone[run.name]) if run.name in gone else run for run in self.runs)
        runs = tuple(run for run in (*kept, new) if run is not None)
        return replace(self, runs=runs)

    def rebased(self, slices: frozenset[SliceId], base: "OperatorState") -> "OperatorState":
        """This state with an earlier one's runs for some slices; epochs since then must come on top.

        A slice gets at most one run an epoch, so runs in order of their epochs are in order for every slice.
        """
        runs = {run.name: run for run in (run.without(slices) for run in self.runs) if run is not None}
        for run in (run.only(slices) for run in base.runs):
            if run is not None and run.name in runs:
                both = SliceSet.union_of((run.slices, runs[run.name].slices))
                runs[run.name] = replace(run, slices=both)
            elif run is not None:
                runs[run.name] = run
        return replace(self, runs=tuple(sorted(runs.values(), key=lambda run: run.epoch)))


States = Mapping[str, OperatorState]
"""By keyed step."""


@dataclass(frozen=True)
class Manifest:
    """Which blocks are true after an epoch, under which plan, after which parent."""

    app: str
    epoch: Epoch
    parent: str
    """The id of the manifest before it; empty for the first."""
    plan: PlanVersion
    driver: int
    """The generation of the driver that committed it."""
    operators: Mapping[str, OperatorState] = field(default_factory=dict)
    outputs: Mapping[str, tuple[BlockRef, ...]] = field(default_factory=dict)
    """By step: the epoch's output, until it is published."""
    offsets: tuple[str, ...] = ()
    """Where the sources stood at the end of the epoch, as Spark logged it."""
    durable: bool = True
    """Its runs are in the durable store; else some may be on workers alone."""
    shedding: Shedding = NOTHING
    """What it shed."""
    account: Account | None = None
    """What became of its rows; None if a release wrote it that kept no account."""

    def blocks(self) -> set[str]:
        """The names of all blocks it needs."""
        return {*self.state_blocks(), *(ref.name for refs in self.outputs.values() for ref in refs)}

    def state_blocks(self) -> set[str]:
        """The names of the blocks that hold its state."""
        runs = (run.name for state in self.operators.values() for run in state.runs)
        pending = (p.block.name for state in self.operators.values() for p in state.pending if p.block is not None)
        return {*runs, *pending}

    @property
    def id(self) -> str:
        """The hash of its content."""
        return hashlib.sha256(self._body().encode()).hexdigest()

    def encode(self) -> bytes:
        """Its content, then a line with its id: a cut-off or altered manifest is recognised."""
        body = self._body()
        return f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n".encode()

    def _body(self) -> str:
        fields = {**vars(self), "format": FORMAT, "shedding": self.shedding.to_json()}
        return codec.dumps(fields, sort_keys=True)

    @classmethod
    def decode(cls, data: bytes) -> "Manifest":
        """Read a manifest; TornManifest if it is not whole, NewerFormat if it is not ours to read."""
        try:
            body, digest, rest = data.decode().split("\n")
            whole = rest == "" and hashlib.sha256(body.encode()).hexdigest() == digest
        except ValueError as error:
            raise TornManifest("cut short") from error
        if not whole:
            raise TornManifest("its hash does not match its content")
        fields = json.loads(body)
        found = fields["format"]
        if not isinstance(found, int) or found > FORMAT:
            raise NewerFormat(f"the manifest of epoch {fields.get('epoch')}", found, FORMAT)
        if found < ONE_INPUT_UNTIL:
            fields["operators"] = {step: _of_one_input(state) for step, state in fields["operators"].items()}
        return codec.convert(cls, {**fields, "shedding": Shedding.from_json(fields.get("shedding", []))})


def _of_one_input(state: dict[str, Any]) -> dict[str, Any]:
    newest = state.get("newest_us")
    return {**state, "newest_us": [] if newest is None else [newest]}

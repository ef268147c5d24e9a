"""Examines a whole checkpoint: every manifest, every block that one names, and the small files beside them.

Only reads, and takes no claim, so it works beside a running app. What such an app removes or replaces meanwhile is no
damage: whatever is found counts only if it is found again when all has been read anew.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from springtide.blocks.block import DIRECTORY as BLOCKS
from springtide.blocks.block import BlockRef, checksum, decode, epoch_of
from springtide.blocks.collect import RETAINED
from springtide.blocks.durable import DIRECTORY as DURABLE
from springtide.blocks.durable import REPLAY, DurableLog, Replay
from springtide.blocks.errors import NewerFormat
from springtide.blocks.finding import Examination, Finding, Part
from springtide.blocks.fsck_records import (
    RESTORE,
    UNREADABLE,
    app_record,
    drivers,
    json_lines,
    set_aside,
    shed_notes,
    spark_log,
    temporary,
)
from springtide.blocks.generation import SPARK, current
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, TornManifest
from springtide.blocks.store import Store
from springtide.blocks.sub_store import Within
from springtide.ids import Epoch

LOOKS = 4
"""How often all is read anew, at most, because of what was found."""
OnBlock = Callable[[int, int, int], None]
"""Told of blocks examined, of how many, and of their bytes."""
Manifests = Mapping[Epoch, Manifest]
MISSING = "missing"


@dataclass(frozen=True)
class Needs:
    """A block that a manifest names."""

    ref: BlockRef
    means: str
    """What it means if it is not as promised; empty if that does no harm."""


@dataclass
class Fsck:
    """Examines the checkpoint in a store."""

    store: Store
    logs: Mapping[str, Callable[[str], object]]
    """By directory of JSON lines: what reads a line."""
    on_block: OnBlock = lambda done, of, size: None
    _whole: dict[str, int] = field(default_factory=dict)
    """Blocks that are as promised, and their sizes: they never change, so once is enough."""

    def __call__(self) -> Examination:
        """Look until nothing is found, or nothing but what the look before has found, too."""
        found, before = self._look(own := current(self.store)), set[Finding]()
        for _ in range(LOOKS - 1):
            place = own.url
            own = current(self.store)
            if set(found.findings) <= before and own.url == place:
                return found
            before, found = set(found.findings), self._look(own)
        for part in found.parts:
            part.findings[:] = [finding for finding in part.findings if finding in before]
        return found

    def _look(self, own: Store) -> Examination:
        """`own` is the directory of the last driver."""
        log, durable = ManifestLog(own), ManifestLog(own, DURABLE)
        bases, durable_part = _manifests(durable, "durable checkpoints")
        manifests, part = _manifests(log, "manifests")
        head = manifests[max(manifests)] if manifests else None
        replay, replay_part = _replay(own)
        app, record = app_record(self.store, begun=head is not None)
        base = max(bases, default=Epoch(-1))
        spark, done = spark_log(own, SPARK, head, base, replay)
        blocks, orphans = self._blocks(list(_needed(manifests, bases, done)), manifests, bases)
        of_driver = (part, durable_part, spark, replay_part, shed_notes(own), set_aside(own))
        for one in of_driver:
            one.findings[:] = [replace(finding, where=_in_root(own, finding.where)) for finding in one.findings]
        others = [json_lines(self.store, directory, read) for directory, read in self.logs.items()]
        parts = (record, blocks, orphans, *of_driver, *others, drivers(self.store), temporary(self.store))
        return Examination(self.store.url, app, None if head is None else head.epoch, parts)

    def _blocks(self, needed: list[Needs], manifests: Manifests, bases: Manifests) -> tuple[Part, Part]:
        """Blocks that are named, and those that nobody names."""
        part, orphans = Part(BLOCKS), Part("blocks that nobody names")
        for number, need in enumerate(needed, start=1):
            what = self._problem(need.ref)
            if what and need.means:
                part.findings.append(Finding(what, need.ref.path, need.means, RESTORE))
            elif what and what != MISSING:
                published = "its epoch is published, and nobody reads it again"
                part.findings.append(Finding(what, need.ref.path, published, "look after the disk", harmless=True))
            elif not what:
                part.count(self._whole[need.ref.name])
            self.on_block(number, len(needed), part.size_bytes)
        named = set[str]().union(*(m.blocks() for m in (*manifests.values(), *bases.values())))
        head = max(manifests, default=-1)
        for name in self.store.list(BLOCKS):
            epoch = epoch_of(name)
            if name not in named and epoch is not None and epoch <= head:  # Later ones: an epoch in flight writes them.
                try:
                    orphans.count(len(self.store.get(f"{BLOCKS}/{name}")))
                except FileNotFoundError:
                    continue  # It has been swept up by now.
        return part, orphans

    def _problem(self, ref: BlockRef) -> str:
        """What is wrong with a block; empty if nothing is."""
        if ref.name in self._whole:
            return ""
        try:
            data = self.store.get(ref.path)
        except FileNotFoundError:
            return MISSING
        if len(data) != ref.size_bytes:
            return f"{len(data)} bytes, and its manifest promises {ref.size_bytes}"
        if checksum(data) != ref.crc32:
            return "its checksum is not the one in its manifest"
        try:
            rows = decode(data).num_rows
        except pa.ArrowException as error:
            return f"no Arrow file: {error}"
        if rows != ref.rows:
            return f"{rows} rows, and its manifest promises {ref.rows}"
        self._whole[ref.name] = len(data)
        return ""


def _in_root(own: Store, name: str) -> str:
    return f"{own.directory}/{name}" if isinstance(own, Within) else name


def _replay(own: Store) -> tuple[Replay | None, Part]:
    part, replay = Part("epochs to repeat"), None
    try:
        replay = DurableLog(own).replay()
        if replay is not None:
            part.count(len(replay.encode()))
    except UNREADABLE as error:
        means = "the app went back, and it is not known which epochs it has to repeat"
        part.findings.append(Finding(f"unreadable: {error}", REPLAY, means, RESTORE))
    return replay, part


def _manifests(log: ManifestLog, name: str) -> tuple[Manifests, Part]:
    """Those that are whole, and the part that they are."""
    part, found, last = Part(name), dict[Epoch, Manifest](), max(log.epochs(), default=Epoch(-1))
    for epoch in log.epochs():
        where = f"{log.directory}, epoch {epoch}"
        try:
            found[epoch] = log.read(epoch)
            part.count(len(found[epoch].encode()))
        except FileNotFoundError:
            continue  # It was forgotten after a later epoch.
        except NewerFormat as error:
            means = "this release refuses to start the app"
            part.findings.append(Finding(f"format {error.found}", where, means, "install the release that wrote it"))
        except (TornManifest, *UNREADABLE) as error:
            spare = "the next start sets it aside, and goes on from the one before" if found else "the state is lost"
            means = spare if epoch == last else "the epoch after it has one of its own"
            remedy = RESTORE if epoch == last and not found else "nothing; look after the disk"
            part.findings.append(Finding(f"torn: {error}", where, means, remedy))
    for epoch, manifest in found.items():
        if (parent := found.get(Epoch(epoch - 1))) is not None and not _follows(log, manifest, parent):
            means = "they are of different histories: one was put there by hand, or by a driver that had lost its claim"
            what = f"its parent is not the manifest of epoch {epoch - 1}"
            part.findings.append(Finding(what, f"{log.directory}, epoch {epoch}", means, RESTORE))
    return found, part


def _follows(log: ManifestLog, manifest: Manifest, parent: Manifest) -> bool:
    if manifest.parent == parent.id:
        return True
    try:
        return manifest.parent == log.written_id(parent.epoch)
    except FileNotFoundError:
        return True  # Forgotten meanwhile.


def _needed(manifests: Manifests, bases: Manifests, done: frozenset[int]) -> Iterator[Needs]:
    """Each block once, with the gravest meaning that it has.

    Blocks that only older manifests name go before these do. State that is not durable is on workers, and need not be
    here. The output of an epoch is needed until Spark has it as done.
    """
    last = sorted(manifests, reverse=True)[:RETAINED]
    needs: list[tuple[Iterator[BlockRef], str]] = []
    for head in last[:1]:
        unpublished = f"epoch {head} is committed, and cannot be published"
        needs += [
            (_state(manifests[head]), f"the state after epoch {head} is lost"),
            (_outputs(manifests[head]), "" if head in done else unpublished),
        ]
    for base in sorted(bases, reverse=True)[:1]:
        needs.append((_state(bases[base]), f"the app cannot go back to the durable checkpoint of epoch {base}"))
    for epoch in last[1:]:
        needs.append((_state(manifests[epoch]), f"if the manifest after epoch {epoch} is lost, there is no way back"))
        needs.append((_outputs(manifests[epoch]), ""))
    seen = set[str]()
    for ref, means in ((ref, means) for refs, means in needs for ref in refs):
        if ref.name not in seen:
            seen.add(ref.name)
            yield Needs(ref, means)


def _state(manifest: Manifest) -> Iterator[BlockRef]:
    """The blocks of its state that are in the durable store."""
    for state in manifest.operators.values():
        yield from state.runs if manifest.durable else ()
        yield from (pending.block for pending in state.pending if pending.block is not None)


def _outputs(manifest: Manifest) -> Iterator[BlockRef]:
    return (ref for refs in manifest.outputs.values() for ref in refs)

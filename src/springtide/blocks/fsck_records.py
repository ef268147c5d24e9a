"""Examines the small files of a checkpoint: the app's record, logs as JSON lines, drivers, and Spark's own log."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator

from springtide.blocks.claim import DIRECTORY as DRIVERS
from springtide.blocks.durable import SHED, Replay
from springtide.blocks.finding import Finding, Part
from springtide.blocks.log import TORN
from springtide.blocks.manifest import Manifest
from springtide.blocks.record import FORMAT, PATH
from springtide.blocks.store import Store
from springtide.plan.shedding import Shedding

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""What readers raise of bytes that are not what they should be."""
RESTORE = "restore the checkpoint from a backup, or start with a new one"


def app_record(store: Store, *, begun: bool) -> tuple[str | None, Part]:
    """The app's name, and its record."""
    part = Part("app record")
    means = "no start can tell whether the app still fits its state"
    try:
        data = store.get(PATH)
        part.count(len(data))
        fields = json.loads(data)
        if fields["format"] > FORMAT:
            what = f"format {fields['format']}, and this release reads up to {FORMAT}"
            part.findings.append(Finding(what, PATH, "this release refuses it", "install the release that wrote it"))
        return str(fields["app"]), part
    except FileNotFoundError:
        if begun:
            part.findings.append(Finding("missing", PATH, means, "restore it from a backup"))
    except UNREADABLE as error:
        part.findings.append(Finding(f"unreadable: {error}", PATH, means, "restore it from a backup"))
    return None, part


def json_lines(store: Store, directory: str, read: Callable[[str], object]) -> Part:
    """A log that tells people of the past; `read` raises for a line that is none of its own."""
    part = Part(directory)
    for path, data in files(store, directory):
        part.count(len(data))
        for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
            try:
                read(line)
            except UNREADABLE as error:
                means = "what it told of the past is lost, and commands that show it fail; the app's state is whole"
                remedy = "remove that line, or the file"
                part.findings.append(Finding(f"line {number} cannot be read: {error}", path, means, remedy))
    return part


def shed_notes(store: Store) -> Part:
    """What epochs have shed that may have to be repeated."""
    part = Part("shed notes")
    for path, data in files(store, SHED):
        part.count(len(data))
        try:
            Shedding.from_json(json.loads(data))
        except UNREADABLE as error:
            means = "if this epoch has to be repeated, it is not known which rows it shed"
            part.findings.append(Finding(f"unreadable: {error}", path, means, RESTORE))
    return part


def drivers(store: Store) -> Part:
    """Who holds the checkpoint, or held it last."""
    part = Part(DRIVERS)
    for path, data in files(store, DRIVERS):
        part.count(len(data))
        try:
            dict(json.loads(data))
        except UNREADABLE as error:
            means = "the next start cannot tell whether that driver still runs"
            part.findings.append(Finding(f"unreadable: {error}", path, means, "see that no driver runs, and remove it"))
    return part


def set_aside(store: Store) -> Part:
    """Manifests that were found cut short by a start, and kept for people to look at."""
    part = Part(TORN)
    for _, data in files(store, TORN):
        part.count(len(data))
    return part


def temporary(store: Store) -> Part:
    """What writes that were cut short have left; only directories have such files."""
    part = Part("temporary files")
    root = getattr(store, "root", None)
    for path in [] if root is None else sorted(root.rglob(".*.tmp")):
        try:
            part.count(path.stat().st_size)
        except FileNotFoundError:
            continue  # It was finished, and has its name now.
    return part


def files(store: Store, directory: str) -> Iterator[tuple[str, bytes]]:
    """Every file directly under a directory; one that is gone by now is left out."""
    for name in store.list(directory):
        try:
            yield f"{directory}/{name}", store.get(f"{directory}/{name}")
        except (FileNotFoundError, IsADirectoryError):
            continue


def spark_log(
    store: Store, directory: str, head: Manifest | None, base: int, replay: Replay | None
) -> tuple[Part, frozenset[int]]:
    """Spark's own log against the head, and the epochs that it has as done.

    If the head is not durable, the app goes back to epoch `base`, and needs the offsets of all epochs since.
    """
    part = Part("Spark's log")
    lost = "Spark cannot go on from it"

    def tell(what: str, name: str, means: str = lost) -> None:
        part.findings.append(Finding(what, f"{directory}/{name}", means, RESTORE))

    logged: dict[str, dict[int, list[str]]] = {"commits": {}, "offsets": {}}
    for kind, entries in logged.items():
        for path, data in files(store, f"{directory}/{kind}"):
            name = path.rpartition("/")[2]
            if name.isdigit():
                part.count(len(data))
                entries[int(name)] = data.decode(errors="replace").splitlines()
                if entries[int(name)][:1] != ["v1"] or not _checksum_fits(store, f"{directory}/{kind}", name, data):
                    tell("cut short or altered", f"{kind}/{name}")
    done = frozenset(logged["commits"])
    if head is None:
        return part, done
    try:
        part.count(len(data := store.get(f"{directory}/metadata")))
        str(json.loads(data)["id"])
    except FileNotFoundError:
        tell("missing", "metadata", "Spark would give the checkpoint a new id, and sinks would refuse it")
    except UNREADABLE as error:
        tell(f"unreadable: {error}", "metadata")
    beyond = [epoch for epoch in done if epoch > head.epoch + 1]
    if beyond and replay is None:
        tell(f"epoch {max(beyond)} is done, and the last manifest is of epoch {head.epoch}", "commits")
    if replay is not None:
        return part, done  # It is being fed to Spark, epoch by epoch.
    entry = logged["offsets"].get(head.epoch)
    if entry is None:
        tell(f"the offsets of epoch {head.epoch} are missing", "offsets", "Spark would read other rows again or none")
    elif head.offsets and tuple(entry[2 : 2 + len(head.offsets)]) != head.offsets:
        what = f"the offsets of epoch {head.epoch} are not those of its manifest"
        tell(what, f"offsets/{head.epoch}", "rows would be lost or read twice")
    lacking = [] if head.durable else sorted(set(range(base + 1, head.epoch)) - set(logged["offsets"]))
    if lacking:
        what = f"the offsets of epochs {', '.join(map(str, lacking))} are missing"
        tell(what, "offsets", f"the app goes back to epoch {base} and cannot repeat what came after")
    return part, done


def _checksum_fits(store: Store, directory: str, name: str, data: bytes) -> bool:
    """Whether a file is what Hadoop has a checksum of: four bytes for each 512; True if there is none."""
    try:
        told = store.get(f"{directory}/.{name}.crc")
    except FileNotFoundError:
        return True
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    return told[:8] == b"crc\0" + struct.pack(">I", 512) and told[8:] == struct.pack(f">{len(sums)}I", *sums)

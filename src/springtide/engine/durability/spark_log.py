"""Spark's own logs in the checkpoint: what an epoch's sources gave, and how to let Spark repeat an epoch."""

import json
from collections.abc import Sequence

from springtide.blocks.errors import LineageBroken
from springtide.blocks.generation import SPARK as DIRECTORY
from springtide.blocks.store import Store
from springtide.ids import Epoch

NOT_BEGUN = "-"
"""In place of the offset of a source that has not given anything yet."""


def entry(store: Store, epoch: Epoch) -> str:
    """What Spark logged of an epoch before it began; it is the same when the epoch is repeated. Empty if nothing."""
    try:
        return store.get(f"{DIRECTORY}/offsets/{epoch}").decode()
    except FileNotFoundError:
        return ""


def offsets(logged: str, sources: int) -> tuple[str, ...]:
    """Where each of the app's sources ends in an epoch, by its entry."""
    return tuple(logged.splitlines()[2 : 2 + sources])


def giving_rows(before: Sequence[str], now: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the sources that gave something between two offsets; `before` is empty if nobody had yet."""
    began = before or (NOT_BEGUN,) * len(now)
    return tuple(number for number, (old, new) in enumerate(zip(began, now, strict=True)) if old != new)


def planned_us(logged: str) -> int | None:
    """The wall clock when Spark planned an epoch, in microseconds since the Unix epoch, by its entry."""
    try:
        return int(json.loads(logged.splitlines()[1])["batchTimestampMs"]) * 1_000
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def fit(store: Store, sources: int, *, nudged: bool) -> None:
    """Let the entries that Spark will read have a line for each source, and one for nudges if the app can be nudged.

    Spark refuses to go on with another number of lines. A nudge has no rows: its line can come and go.
    """
    for epoch in _logged(store, "offsets")[-2:]:
        path = f"{DIRECTORY}/offsets/{epoch}"
        entry = store.get(path).decode()
        fitting = fitted(entry, sources, nudged=nudged)
        if fitting != entry:
            # First the checksum of the old text: an entry without one is read, one with a wrong one is not.
            store.delete([f"{DIRECTORY}/offsets/.{epoch}.crc"])
            store.put(path, fitting.encode())


def fitted(entry: str, sources: int, *, nudged: bool) -> str:
    """An entry with a line for each source, and one for nudges if there is to be one."""
    lines = entry.split("\n")
    own, rest = lines[: 2 + sources], lines[2 + sources :]
    if len(own) < 2 + sources or len(rest) > 1 or not all(line.startswith((NOT_BEGUN, '"')) for line in rest):
        return entry  # Of another app: Spark says so.
    return "\n".join([*own, *((rest or [NOT_BEGUN]) if nudged else [])])


def lineage(store: Store) -> str:
    """The id that Spark gave this checkpoint's query when it first started; it outlives restarts and going back."""
    return str(json.loads(store.get(f"{DIRECTORY}/metadata"))["id"])


def initial_offset(store: Store, source: int) -> str | None:
    """Where a source began that remembers that, as Spark logged it before its first epoch."""
    try:
        return store.get(f"{DIRECTORY}/sources/{source}/0").decode().splitlines()[-1]
    except (FileNotFoundError, IndexError):
        return None


def align(store: Store, head: Epoch | None) -> None:
    """Make Spark repeat the epoch after the last committed one.

    Spark may have logged an epoch as done whose manifest turned out to be torn. Its entry is removed,
    so that Spark runs it again from the same offsets. More than one epoch can't be repeated so.
    """
    again = 0 if head is None else head + 1
    beyond = [epoch for epoch in _logged(store, "commits") if epoch >= again]
    if not beyond:
        return
    if beyond != [again]:
        raise LineageBroken(beyond[-1] + 1, again - 1)
    # Spark goes on from its last offsets: those of an epoch it had begun since would make it skip this one.
    _forget(store, "offsets", [epoch for epoch in _logged(store, "offsets") if epoch > again])
    _forget(store, "commits", [again])


def entries(store: Store, after: int) -> dict[Epoch, str]:
    """What Spark logged of the offsets of each epoch after one, whether it was done or not."""
    later = [epoch for epoch in _logged(store, "offsets") if epoch > after]
    return {Epoch(epoch): store.get(f"{DIRECTORY}/offsets/{epoch}").decode() for epoch in later}


def done(store: Store, epoch: Epoch) -> bool:
    """Whether Spark has logged an epoch as done."""
    return epoch in _logged(store, "commits")


def begun(store: Store) -> bool:
    """Whether Spark has logged an epoch's offsets, and not yet that it was done."""
    last = _logged(store, "offsets")[-1:]
    return bool(last) and not done(store, Epoch(last[0]))


def feed(store: Store, epoch: Epoch, entry: str) -> None:
    """Make Spark run an epoch next, from these offsets. No query may be running."""
    _forget(store, "commits", [e for e in _logged(store, "commits") if e >= epoch])
    _forget(store, "offsets", [e for e in _logged(store, "offsets") if e >= epoch])
    store.put(f"{DIRECTORY}/offsets/{epoch}", entry.encode())


def _logged(store: Store, log: str) -> list[int]:
    return sorted(int(name) for name in store.list(f"{DIRECTORY}/{log}") if name.isdigit())


def _forget(store: Store, log: str, epochs: list[int]) -> None:
    store.delete(f"{DIRECTORY}/{log}/{name}" for epoch in epochs for name in (f"{epoch}", f".{epoch}.crc"))

"""Spark's own logs in the checkpoint: what an epoch's sources gave, and how to let Spark repeat an epoch."""

from springtide.blocks.errors import LineageBroken
from springtide.blocks.store import Store
from springtide.ids import Epoch

DIRECTORY = "spark"


def offsets(store: Store, epoch: Epoch) -> tuple[str, ...]:
    """Where each source ends in an epoch, as Spark logged it before the epoch began."""
    try:
        lines = store.get(f"{DIRECTORY}/offsets/{epoch}").decode().splitlines()
    except FileNotFoundError:
        return ()
    return tuple(lines[2:])


def align(store: Store, head: Epoch | None) -> None:
    """Make Spark repeat the epoch after the last committed one.

    Spark may have logged an epoch as done whose manifest turned out to be torn. Its entry is removed,
    so that Spark runs it again from the same offsets. More than one epoch can't be repeated so.
    """
    last = -1 if head is None else head
    done = [int(n) for n in store.list(f"{DIRECTORY}/commits") if n.isdigit()]
    beyond = sorted(epoch for epoch in done if epoch > last)
    if not beyond:
        return
    if beyond != [last + 1]:
        raise LineageBroken(beyond[-1] + 1, last)
    path = f"{DIRECTORY}/commits"
    store.delete([f"{path}/{last + 1}", f"{path}/.{last + 1}.crc"])

"""What a cluster's checkpoint and sinks must hold."""

from pathlib import Path

from chaos_kit import head, manifests
from chaos_oracle import expected, published

from springtide.blocks.block import checksum, epoch_of
from springtide.blocks.store import LocalStore


def check(root: Path, checkpoint: Path, keys: int, input_epochs: int | None = None) -> None:
    """The sinks hold exactly what the committed epochs give, and nothing that a manifest names is missing.

    If there were rows for the first epochs only, those after them had none.
    """
    last = head(checkpoint)
    assert last is not None
    epochs = last.epoch + 1
    with_rows = epochs if input_epochs is None else input_epochs
    assert with_rows <= epochs
    oracle, found = expected(with_rows, keys, range(with_rows, epochs)), published(root)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
    whole(checkpoint)


def whole(checkpoint: Path) -> None:
    """Nothing that a durable manifest names is missing, or other than it was written."""
    for manifest in (m for m in manifests(checkpoint) if m.durable):
        runs = [run for state in manifest.operators.values() for run in state.runs]
        for ref in [*runs, *(ref for refs in manifest.outputs.values() for ref in refs)]:
            data = (checkpoint / ref.path).read_bytes()
            assert (len(data), checksum(data)) == (ref.size_bytes, ref.crc32), ref


def orphans(checkpoint: Path) -> set[str]:
    """Durable blocks of committed epochs that no manifest names, of epochs whose manifests are all there."""
    known = manifests(checkpoint)
    named = set().union(*(m.blocks() for m in known))
    epochs = {m.epoch for m in known}
    return {n for n in LocalStore(checkpoint).list("blocks") if epoch_of(n) in epochs and n not in named}

"""Logs that do not grow for ever: a directory keeps its newest files, up to a number."""

from springtide.blocks.store import Store


def rotate(store: Store, directory: str, keep: int) -> list[str]:
    """Remove the first files of a directory, by name, until `keep` are left; the names of those that are."""
    names = store.list(directory)
    gone, left = names[: max(0, len(names) - keep)], names[max(0, len(names) - keep) :]
    store.delete(f"{directory}/{name}" for name in gone)
    return left

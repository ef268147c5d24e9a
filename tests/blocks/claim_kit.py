"""What the tests of the claim share."""

from springtide.blocks.claim import DIRECTORY, Holder
from springtide.blocks.store import Store

STRANGER = Holder("another-host", "another-boot", 4711, "99", beat=3)


def path_of(generation: int) -> str:
    return f"{DIRECTORY}/{generation:09d}.json"


def plant(store: Store, holder: Holder, generation: int = 1) -> None:
    store.put(path_of(generation), holder.encode())

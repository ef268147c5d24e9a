"""The fence: a driver that was taken over finds out before what it does can count.

A driver that is paused or cut off does not know for how long. So it is not asked whether it may write, but whether it
might: it writes, then checks that nobody has taken over, and acts on what it wrote only then. A successor claims first
and reads then. So what a driver has acted on was there before its successor looked, and what came later is void.
The proof is in `docs/architecture.md`.
"""

from typing import Protocol


class Fence(Protocol):
    """Tells a driver whether it still holds its checkpoint."""

    generation: int

    def check(self) -> None:
        """TakenOver if a later driver has claimed the checkpoint."""


class Unfenced:
    """For whoever makes nothing true, such as a reader."""

    generation = 0

    def check(self) -> None:
        """Nothing depends on it."""


UNFENCED = Unfenced()

"""What makes an epoch start over: under another plan, or from an earlier state."""

from collections.abc import Mapping

from springtide.blocks.slice_set import SliceSet
from springtide.ids import Epoch, SliceId, WorkerId


class Replan(Exception):
    """An epoch can't be finished under its plan: tasks ran on other workers, or without their state."""

    def __init__(
        self, step: str, astray: Mapping[WorkerId, str], missing: Mapping[WorkerId, frozenset[SliceId]]
    ) -> None:
        super().__init__(step, astray, missing)
        self.step, self.astray, self.missing = step, astray, missing

    def __str__(self) -> str:
        lost = "; ".join(f"worker {w} lacks slices {SliceSet.of(s)}" for w, s in self.missing.items())
        strays = "; ".join(f"a task for worker {w} ran on {other}" for w, other in self.astray.items())
        return f"step {self.step!r}: {' and '.join(filter(None, (lost, strays)))}"


class Halted(Exception):
    """An epoch is broken off, for the workers to be swapped."""

    def __str__(self) -> str:
        return "the app was stopped, for its workers to be swapped"


class GoBack(Exception):
    """Every copy of some state is lost: the app has to go back to its last durable checkpoint."""

    def __init__(self, epoch: Epoch, cause: Exception) -> None:
        super().__init__(epoch, cause)
        self.epoch, self.cause = epoch, cause

    def __str__(self) -> str:
        return f"epoch {self.epoch} can't be computed from what the workers have left ({self.cause})"

"""Errors that name the step."""

from springtide.confidential import hide
from springtide.errors import BadValue, SpringtideError


class StepFailed(SpringtideError):
    """A step, or a function that a user gave it, failed. A note says what became of the epoch."""

    def __init__(self, step: str, doing: str, reason: str, hint: str = "") -> None:
        reason, hint = hide(reason), hide(hint)  # Drivers and servers may quote what they were given.
        super().__init__(step, doing, reason, hint)
        self.step, self.doing, self.reason, self.hint = step, doing, reason, hint

    def __str__(self) -> str:
        text = f"step {self.step!r} failed while {self.doing}: {self.reason}"
        return f"{text}\n{self.hint}" if self.hint else text


class BadGraph(BadValue):
    """A dataflow that can't run as written."""

    def __init__(self, step: str, expected: str, got: str) -> None:
        super().__init__(step, expected, got)
        self.step, self.expected, self.got = step, expected, got

    def __str__(self) -> str:
        return f"step {self.step!r}: expected {self.expected}, got {self.got}"

"""A clock that moves only when a test says so."""


class ManualClock:
    """Call it for the time in seconds; `advance` moves it on, or back."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

"""When the output is steady again after a disturbance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.metrics.migration.flow import Flow, Lump, usual_spread_s

ROUNDING = 1e-9
"""A share of the rate by which it may miss its bounds: sums of fractions are not exact."""


@dataclass(frozen=True)
class Steadiness:
    """When an output counts as steady."""

    window_s: float = 60.0
    """How long it has to stay near the expected rate."""
    smooth_s: float = 10.0
    """The span over which the rate is averaged; some epochs should fit in."""
    tolerance: float = 0.2
    """How far the rate may be from the expected one, as a share of that."""
    expected_rows_per_s: float | None = None
    """None: the mean rate of the calm before."""
    calm_s: float = 60.0
    """How long before the disturbance the calm goes back."""

    def __post_init__(self) -> None:
        for name in ("window_s", "smooth_s", "calm_s"):
            if not getattr(self, name) > 0:
                raise BadValue(f"{name}: expected more than 0 seconds, got {getattr(self, name)}")
        if self.smooth_s > self.window_s:
            raise BadValue(f"smooth_s: expected at most the window of {self.window_s} s, got {self.smooth_s}")
        if not 0 <= self.tolerance < 1:
            raise BadValue(f"tolerance: expected a share from 0 to below 1, got {self.tolerance}")
        if self.expected_rows_per_s is not None and not self.expected_rows_per_s > 0:
            raise BadValue(f"expected_rows_per_s: expected more than 0, got {self.expected_rows_per_s}")


def calm_rate(outputs: Sequence[Lump], calm_s: float) -> float | None:
    """Rows a second before time 0; None if fewer than two outputs tell, or nothing came out."""
    calm = [(at, rows) for at, rows in outputs if -calm_s <= at <= 0]
    seconds = calm[-1][0] - calm[0][0] if calm else 0.0
    if seconds <= 0:
        return None
    return sum(rows for at, rows in calm if at > calm[0][0]) / seconds or None


def steady_from(outputs: Sequence[Lump], steadiness: Steadiness, over_at: float = 0.0) -> float | None:
    """The start of the first window, at time 0 or later, in which every average is near the expected rate.

    The window goes on until the first average after `over_at`, when the disturbance was over: before it has shown, all
    is steady. Outputs are in the order of time, also those without rows. None if there is no such window that they
    cover, or if it is not known what to expect.
    """
    expected = steadiness.expected_rows_per_s or calm_rate(outputs, steadiness.calm_s)
    if expected is None or not outputs:
        return None
    times = [at for at, _ in outputs]
    calm_times = [at for at in times if at >= -steadiness.calm_s]
    flow = Flow.of(outputs, usual_spread_s(calm_times, 0.0))
    start, window_s, smooth_s = 0.0, steadiness.window_s, steadiness.smooth_s
    for first, last in _astray(flow, expected, times[-1], steadiness):
        if first >= max(start + window_s, over_at + smooth_s):
            break
        start = max(start, last - smooth_s)
    return start if max(start + window_s, over_at + smooth_s) <= times[-1] else None


def _astray(flow: Flow, expected: float, until: float, steadiness: Steadiness) -> Iterator[tuple[float, float]]:
    """The times, in order, at whose ends the average is too low or too high.

    The average is a straight line from one bend to the next, so looking at the bends is enough.
    """
    smooth_s = steadiness.smooth_s
    low = expected * (1 - steadiness.tolerance - ROUNDING)
    high = expected * (1 + steadiness.tolerance + ROUNDING)
    bends = {at + shift for at in flow.times for shift in (0.0, smooth_s)}
    at = sorted({smooth_s, until, *(b for b in bends if smooth_s < b < until)}) if until > smooth_s else []
    rates = [flow.rate(t, smooth_s) for t in at]
    for i in range(len(at) - 1):
        line = (at[i], rates[i]), (at[i + 1], rates[i + 1])
        found = [_beyond(*line, low, -1), _beyond(*line, high, 1)]
        yield from sorted(part for part in found if part is not None)


def _beyond(
    first: tuple[float, float], last: tuple[float, float], bound: float, side: int
) -> tuple[float, float] | None:
    """The part of a line that lies beyond a bound: above it (side 1) or below (−1)."""
    over = [(rate - bound) * side for _, rate in (first, last)]
    if max(over) <= 0:
        return None
    if min(over) >= 0:
        return first[0], last[0]
    crossing = first[0] + (last[0] - first[0]) * over[0] / (over[0] - over[1])
    return (first[0], crossing) if over[0] > 0 else (crossing, last[0])

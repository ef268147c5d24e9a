"""How many rows an open-loop source owes by when: the rate profiles.

A rate is a cumulative count of rows over time and its inverse. Row ``i`` is due at the first moment the
cumulative count reaches ``i + 1``; ``due_rows`` is defined as the number of rows whose ``due_at`` has
passed, so that the two agree to the last bit and not only up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from springtide.errors import BadValue

Rows = NDArray[np.int64]
Seconds = NDArray[np.float64]


class Rate(Protocol):
    """A rate profile: a frozen, hashable value that can be written as JSON."""

    def due_rows(self, elapsed_s: float) -> int:
        """Rows due in the first ``elapsed_s`` seconds: 0 before the start, and never fewer later on."""
        ...

    def due_at(self, row: Rows) -> Seconds:
        """Seconds after the start at which each row is due; ``inf`` for a row that never is.

        Elementwise: a row's time does not depend on which rows are asked for together with it.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """The profile as a plain dict, tagged with its kind; ``from_json`` reads it back."""
        ...


@dataclass(frozen=True)
class Constant:
    """The same rate for ever."""

    rows_per_s: float

    def __post_init__(self) -> None:
        _require_positive("a constant rate", "rows_per_s", self.rows_per_s)

    def due_rows(self, elapsed_s: float) -> int:
        return _count_due(self, elapsed_s, self.rows_per_s * elapsed_s)

    def due_at(self, row: Rows) -> Seconds:
        return (row + 1) / np.float64(self.rows_per_s)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "constant", "rows_per_s": self.rows_per_s}


@dataclass(frozen=True)
class Step:
    """Piecewise constant: ``steps`` are ``(from_s, rows_per_s)``, the last one holds for ever."""

    steps: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.steps or self.steps[0][0] != 0:
            raise BadValue(f"a step rate starts at second 0, got steps {self.steps!r}")
        starts = [from_s for from_s, _ in self.steps]
        if not all(map(math.isfinite, starts)) or any(b <= a for a, b in pairwise(starts)):
            raise BadValue(f"the seconds of a step rate must be finite and rise, got {starts!r}")
        rates = [rows_per_s for _, rows_per_s in self.steps]
        if not all(math.isfinite(r) and r >= 0 for r in rates) or not any(rates):
            raise BadValue(f"the rows_per_s of a step rate are >= 0 and not all 0, got {rates!r}")

    def due_rows(self, elapsed_s: float) -> int:
        from_s, rows_per_s, before, _ = _segments(self.steps)
        at = max(int(np.searchsorted(from_s, elapsed_s, side="right")) - 1, 0)
        return _count_due(self, elapsed_s, float(before[at] + rows_per_s[at] * (elapsed_s - from_s[at])))

    def due_at(self, row: Rows) -> Seconds:
        from_s, rows_per_s, before, until_s = _segments(self.steps)
        wanted = (row + 1).astype(np.float64)
        # side="left" finds the segment that *reaches* the count, so a pause is never charged with it.
        at = np.searchsorted(before, wanted, side="left") - 1
        with np.errstate(divide="ignore"):
            due_s = from_s[at] + (wanted - before[at]) / rows_per_s[at]
        return np.minimum(due_s, until_s[at])

    def to_json(self) -> dict[str, Any]:
        return {"kind": "step", "steps": [list(step) for step in self.steps]}


@dataclass(frozen=True)
class Sine:
    """``mean + amplitude * sin(2 pi t / period_s)``: a day of traffic in ``period_s`` seconds."""

    mean: float
    amplitude: float
    period_s: float

    def __post_init__(self) -> None:
        _require_positive("a sine rate", "mean", self.mean)
        _require_positive("a sine rate", "period_s", self.period_s)
        if not 0 <= self.amplitude <= self.mean:
            raise BadValue(f"a sine rate needs an amplitude of 0..{self.mean!r}, got {self.amplitude!r}")

    def due_rows(self, elapsed_s: float) -> int:
        periods, phase = divmod(elapsed_s / self.period_s, 1.0)
        swing = self.amplitude / self.mean
        done = float(_sine_cumulative(np.array([phase]), swing)[0])
        return _count_due(self, elapsed_s, (periods + done) * self.mean * self.period_s)

    def due_at(self, row: Rows) -> Seconds:
        # Solved in units of one period, where the cumulative runs from 0 to 1: precision does not fade
        # with the hours, and one table serves every profile of the same swing.
        periods, wanted = np.divmod((row + 1) / np.float64(self.mean * self.period_s), 1.0)
        return (periods + _sine_phase(wanted, self.amplitude / self.mean)) * self.period_s

    def to_json(self) -> dict[str, Any]:
        return {"kind": "sine", "mean": self.mean, "amplitude": self.amplitude, "period_s": self.period_s}


def constant(rows_per_s: float) -> Constant:
    """``rows_per_s`` rows every second.

    >>> constant(100).due_rows(2.5)
    250
    """
    return Constant(rows_per_s)


def step(steps: Iterable[tuple[float, float]]) -> Step:
    """From second ``s`` on, rate ``r``: ``step([(0, 100), (60, 400), (120, 100)])``; rate 0 is a pause.

    >>> step([(0, 100), (60, 400)]).due_rows(61)
    6400
    """
    return Step(tuple((from_s, rows_per_s) for from_s, rows_per_s in steps))


def sine(mean: float, amplitude: float, period_s: float) -> Sine:
    """A rate that swings by ``amplitude`` around ``mean`` rows a second, starting at the mean and rising.

    >>> sine(100, 50, period_s=60).due_rows(60)
    6000
    """
    return Sine(mean, amplitude, period_s)


def from_json(tagged: Mapping[str, Any]) -> Rate:
    """The profile that wrote ``tagged``; a ``ValueError`` says what is wrong with it otherwise."""
    fields = dict(tagged)
    kind = fields.pop("kind", None)
    try:
        match kind:
            case "constant":
                return constant(**fields)
            case "step":
                return step(**fields)
            case "sine":
                return sine(**fields)
    except TypeError as wrong:
        raise BadValue(f"not the fields of a {kind} rate ({wrong}): {fields!r}") from wrong
    raise BadValue(f"a rate has kind constant, step or sine, got {kind!r}")


def _require_positive(what: str, field: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BadValue(f"{what} needs a finite {field} > 0, got {value!r}")


def _count_due(rate: Rate, elapsed_s: float, guess: float) -> int:
    """How many rows ``due_at`` puts at or before ``elapsed_s``, searched from a guess a rounding away."""
    rows = max(int(guess), 0)
    while rows > 0 and rate.due_at(np.array([rows - 1]))[0] > elapsed_s:
        rows -= 1
    while rate.due_at(np.array([rows]))[0] <= elapsed_s:
        rows += 1
    return rows


@lru_cache(maxsize=64)
def _segments(steps: tuple[tuple[float, float], ...]) -> tuple[Seconds, Seconds, Seconds, Seconds]:
    """Per segment: where it starts, its rate, the rows due before it, where it ends."""
    from_s, rows_per_s = (np.array(column, dtype=np.float64) for column in zip(*steps, strict=True))
    before = np.concatenate([[0.0], np.cumsum(np.diff(from_s) * rows_per_s[:-1])])
    return from_s, rows_per_s, before, np.append(from_s[1:], np.inf)


def _sine_cumulative(phase: Seconds, swing: float) -> Seconds:
    """The share of a period's rows that is due at ``phase`` of it, both in 0..1."""
    return phase + swing * (1.0 - np.cos(2 * np.pi * phase)) / (2 * np.pi)


@lru_cache(maxsize=64)
def _sine_table(swing: float) -> tuple[Seconds, Seconds]:
    phase = np.linspace(0.0, 1.0, 4097)
    return phase, _sine_cumulative(phase, swing)


def _sine_phase(wanted: Seconds, swing: float) -> Seconds:
    """The inverse of ``_sine_cumulative``: Newton's method, kept inside a bracket that shrinks each round.

    The number of rounds is fixed because stopping when all rows are good would make a row's last bit
    depend on its neighbours. Where the rate touches 0 Newton is slow, but the cumulative is flat there:
    what is left after 8 rounds is below the rounding of the cumulative itself.
    """
    phases, cumulative = _sine_table(swing)
    at = np.clip(np.searchsorted(cumulative, wanted, side="right") - 1, 0, len(phases) - 2)
    low, high = phases[at], phases[at + 1]
    phase = (low + high) / 2
    for _ in range(8):
        excess = _sine_cumulative(phase, swing) - wanted
        low, high = np.where(excess < 0, phase, low), np.where(excess < 0, high, phase)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = phase - excess / (1.0 + swing * np.sin(2 * np.pi * phase))
        phase = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return np.asarray(phase)

"""When rows fall due: a rate over time, with noise if wanted, added up once so that any moment can be asked for."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.simulator.scenario.fields import BadScenario, Fields

Floats = NDArray[np.float64]
FINEST_S = 0.01
"""Steps of time need not be finer: epochs take longer."""
MOMENTS = 100_000
"""The most points in time at which a rate is told; between two of them it stays the same."""


@dataclass(frozen=True)
class Constant:
    """The same rate all the time."""

    rows_per_s: float

    def at(self, seconds: Floats) -> Floats:
        return np.full_like(seconds, self.rows_per_s)


@dataclass(frozen=True)
class Steps:
    """From each second on, another rate."""

    steps: tuple[tuple[float, float], ...]

    def at(self, seconds: Floats) -> Floats:
        begins, rates = np.array(self.steps).T
        return np.asarray(rates[np.searchsorted(begins, seconds, side="right") - 1])


@dataclass(frozen=True)
class Sine:
    """A swing around a mean, such as day and night."""

    mean: float
    amplitude: float
    period_s: float
    peak_at_s: float

    def at(self, seconds: Floats) -> Floats:
        turn = 2 * math.pi * (seconds - self.peak_at_s) / self.period_s
        return np.asarray(self.mean + self.amplitude * np.cos(turn))


@dataclass(frozen=True)
class Profile:
    """A rate, and how far the real one strays from it."""

    shape: Constant | Steps | Sine
    noise: float = 0.0
    """The usual relative distance."""
    noise_s: float = 60.0
    """How long it stays on one side, roughly."""


class Arrivals:
    """The rows of one source. The same seed gives the same rows."""

    def __init__(self, profile: Profile, duration_s: float, rng: np.random.Generator) -> None:
        self._step_s = max(FINEST_S, duration_s / MOMENTS)
        steps = math.ceil(duration_s / self._step_s)
        seconds: Floats = np.linspace(0.0, steps * self._step_s, steps + 1)
        rates = profile.shape.at(seconds) * _strayed(profile, len(seconds), self._step_s, rng)
        self._rates = np.maximum(rates, 0.0)
        self._due = np.concatenate(([0.0], np.cumsum(self._rates * self._step_s)))

    def rate(self, at_s: float) -> float:
        """Rows a second at that time."""
        return float(self._rates[min(int(at_s / self._step_s), len(self._rates) - 1)])

    def due(self, at_s: float) -> int:
        """Rows that fell due since the start."""
        whole, part = divmod(at_s / self._step_s, 1.0)
        i = min(int(whole), len(self._rates) - 1)
        return int(self._due[i] + part * self._rates[i] * self._step_s)


def read_profile(fields: Fields) -> Profile:
    """The profile that a scenario tells."""
    shape: Constant | Steps | Sine
    match fields.choice("kind", ("constant", "steps", "sine")):
        case "constant":
            shape = Constant(fields.number("rows_per_s"))
        case "steps":
            steps = fields.pairs("steps")
            begins = [begin for begin, _ in steps]
            if begins[0] != 0 or sorted(set(begins)) != begins:
                raise BadScenario(fields.key("steps"), "seconds that begin with 0 and rise", begins)
            shape = Steps(steps)
        case _:
            mean = fields.positive("mean")
            period_s = fields.positive("period_s")
            amplitude = fields.number("amplitude", most=mean)
            shape = Sine(mean, amplitude, period_s, fields.number("peak_at_s", period_s / 4))
    profile = Profile(shape, fields.number("noise", 0.0, most=1.0), fields.positive("noise_s", 60.0))
    fields.end()
    return profile


def _strayed(profile: Profile, count: int, step_s: float, rng: np.random.Generator) -> Floats:
    """Factors around 1 that stray slowly: each moment keeps most of the one before it."""
    if not profile.noise:
        return np.ones(count)
    keeps = math.exp(-step_s / profile.noise_s)
    jumps = rng.normal(0.0, profile.noise * math.sqrt(1 - keeps**2), count)
    factors = np.empty(count)
    stray = 0.0
    for i, jump in enumerate(jumps):
        stray = keeps * stray + jump
        factors[i] = 1 + stray
    return factors

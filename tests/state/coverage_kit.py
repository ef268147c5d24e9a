"""Keys of known truth whose rows were shed by chance, and how often an interval holds it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from springtide.state.aggregates.sample import Moments, ShedRows

Floats = npt.NDArray[np.float64]
Values = Callable[[np.random.Generator, int], Floats]


def lognormal(sigma: float) -> Values:
    return lambda random, n: np.exp(sigma * random.normal(size=n))


@dataclass(frozen=True)
class Keys:
    """By key that showed up: the truth, and what was seen of it."""

    rows: npt.NDArray[np.int64]
    total: Floats
    seen_total: Floats
    shed: ShedRows
    moments: Moments

    @property
    def mean(self) -> Floats:
        """The estimate."""
        return (self.seen_total + self.moments.unseen) / (self.shed.seen + self.shed.unseen)


def sampled(kept: tuple[float, ...], values: Values, keys: int = 20_000, sizes: tuple[int, int] = (4, 500)) -> Keys:
    """Keys of log-uniform sizes; each row in a random epoch, and kept with its chance."""
    random = np.random.default_rng(5)
    rows = np.exp(random.uniform(*np.log(sizes), keys)).astype(np.int64)
    key = np.repeat(np.arange(keys), rows)
    p = np.array(kept)[random.integers(0, len(kept), len(key))]
    x = values(random, len(key))
    seen = random.random(len(key)) < p
    shown = np.unique(key[seen])
    key_of, y, lost = key[seen], x[seen], (1 - p[seen]) / p[seen]
    weight = lost / p[seen]

    def total(weights: Any) -> Any:
        return np.bincount(key_of, weights, keys)[shown]

    return Keys(
        rows[shown],
        np.bincount(key, x, keys)[shown],
        total(y),
        ShedRows(total(np.ones(len(y))), total(lost), total(weight)),
        Moments(total(y * lost), *(total(y**k * weight) for k in (1, 2, 3))),
    )


def share(low: Floats, truth: npt.NDArray[Any], high: Floats) -> float:
    """Of the intervals, those that hold the truth."""
    slack = 1e-9 * np.abs(truth)
    return float(np.mean((low <= truth + slack) & (truth - slack <= high)))

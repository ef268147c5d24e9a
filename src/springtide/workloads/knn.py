"""K nearest neighbours: readings of sensors against a reference set that is made from a seed."""

import json
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.logic import Groups
from springtide.state.reduce import Reduced

SCHEMA = "reading BIGINT, sensor INT, p ARRAY<DOUBLE>"
"""Of a record: a point, and the sensor that it comes from."""
DIMENSIONS = 4
CLUSTERS = 12
SENSORS = 200
STRAYS = 0.1
"""The share of readings that belong to no cluster."""
SEED = 11
Floats = npt.NDArray[np.float64]


def reading(number: int, seed: int = SEED) -> dict[str, Any]:
    """A reading, the same for the same number."""
    random = Random(seed * 1_000_003 + number)
    sensor, stray = random.randrange(SENSORS), random.random() < STRAYS
    centre = _centres(seed)[random.randrange(CLUSTERS)]
    point = [random.random() if stray else random.gauss(c, 0.03) for c in centre]
    return {"reading": number, "sensor": sensor, "p": point}


def record(number: int, seed: int = SEED) -> bytes:
    """A reading as a record of a topic."""
    return json.dumps(reading(number, seed)).encode()


@dataclass(frozen=True)
class Neighbours:
    """Tells how unusual each sensor's readings are: how far from those of the reference set. Runs on workers.

    A reading is unusual if its k nearest neighbours are further away than `usual` on average.
    """

    k: int = 5
    reference: int = 4000
    """Points to compare with; a reading takes time in proportion."""
    usual: float = 0.08
    seed: int = SEED
    STATE: ClassVar = {"readings": int, "unusual": int}
    OUTPUT: ClassVar = {"sensor": int, "readings": int, "unusual": int}

    def distance(self, point: Floats) -> float:
        """How far the k nearest neighbours of a point are, on average."""
        away = np.square(_reference(self.reference, self.seed) - point).sum(axis=1)
        return float(np.sqrt(np.partition(away, self.k - 1)[: self.k]).mean())

    def __call__(self, groups: Groups) -> Reduced:
        points = np.array(groups.rows["p"].to_pylist(), np.float64)
        unusual = np.array([self.distance(point) > self.usual for point in points], np.float64)
        of_row = groups.group_of_row
        state = pa.table(
            {
                "readings": _before(groups, "readings") + np.bincount(of_row, minlength=len(groups)),
                "unusual": _before(groups, "unusual") + np.bincount(of_row, unusual, len(groups)).astype(np.int64),
            }
        )
        return Reduced(state, state.add_column(0, "sensor", groups.keys["sensor"]))


def _before(groups: Groups, column: str) -> npt.NDArray[np.int64]:
    return np.where(groups.known, groups.state[column].fill_null(0).to_numpy(), 0)


@lru_cache(maxsize=4)
def _centres(seed: int) -> Floats:
    return np.random.default_rng(seed).uniform(0.2, 0.8, (CLUSTERS, DIMENSIONS))


@lru_cache(maxsize=4)
def _reference(size: int, seed: int) -> Floats:
    """Points around the centres of the clusters."""
    random = np.random.default_rng(seed + 1)
    return _centres(seed)[random.integers(0, CLUSTERS, size)] + random.normal(0, 0.03, (size, DIMENSIONS))

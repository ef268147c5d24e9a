"""Taxi Drives: a city made from a seed, drives through it, and two queries that have to think about every drive.

What they do is geometry, a drive at a time: the streets where a drive began and ended, and the zones. How long that
takes is for the caller to say, by how finely the city is drawn.
"""

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

SCHEMA = "drive BIGINT, taxi INT, x0 DOUBLE, y0 DOUBLE, x1 DOUBLE, y1 DOUBLE, seconds DOUBLE"
"""Of a record: where and when a drive began and ended, in kilometres from the city's corner, and how long it took."""
SIDE_KM = 20.0
TAXIS = 400
ZONES = 24
SEED = 7
Floats = npt.NDArray[np.float64]


def drive(number: int, seed: int = SEED) -> dict[str, Any]:
    """A drive, the same for the same number."""
    random = Random(seed * 1_000_003 + number)
    x0, y0, x1, y1 = (random.uniform(0, SIDE_KM) for _ in range(4))
    km_h = random.uniform(15, 45)
    seconds = (abs(x1 - x0) + abs(y1 - y0)) / km_h * 3600
    return {
        "drive": number,
        "taxi": random.randrange(TAXIS),
        "x0": x0,
        "y0": y0,
        "x1": x1,
        "y1": y1,
        "seconds": seconds,
    }


def record(number: int, seed: int = SEED) -> bytes:
    """A drive as a record of a topic."""
    return json.dumps(drive(number, seed)).encode()


@dataclass(frozen=True)
class City:
    """Streets and zones, drawn so finely; a point takes time in proportion."""

    detail: int = 4
    seed: int = SEED

    def on_street(self, x: float, y: float) -> tuple[float, float]:
        """The nearest point that is on a street."""
        ax, ay, dx, dy, length2 = _streets(self)
        along = np.clip(((x - ax) * dx + (y - ay) * dy) / length2, 0.0, 1.0)
        px, py = ax + along * dx, ay + along * dy
        nearest = int(np.argmin((px - x) ** 2 + (py - y) ** 2))
        return float(px[nearest]), float(py[nearest])

    def zone(self, x: float, y: float) -> int:
        """The zone that a point lies in, the first if it is in several; -1 if in none."""
        x0, y0, y1, slope = _borders(self)
        crossed = ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * slope)
        inside = np.flatnonzero(crossed.sum(axis=1) % 2)
        return int(inside[0]) if len(inside) else -1


@lru_cache(maxsize=4)
def _streets(city: City) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Where each street begins, how far it goes in either direction, and the square of its length."""
    random = np.random.default_rng(city.seed)
    count = 1000 * city.detail
    ax, ay = random.uniform(0, SIDE_KM, (2, count))
    angle, length = random.uniform(0, 2 * np.pi, count), random.uniform(0.05, 0.6, count)
    return ax, ay, length * np.cos(angle), length * np.sin(angle), length**2


@lru_cache(maxsize=4)
def _borders(city: City) -> tuple[Floats, Floats, Floats, Floats]:
    """The edges of the zones' borders, a row a zone: where they begin, where they end, how far across they go."""
    random = np.random.default_rng(city.seed + 1)
    corners = 80 * city.detail
    centre = random.uniform(0, SIDE_KM, (2, ZONES, 1))
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    radius = random.uniform(1.5, 4.0, (ZONES, 1)) * random.uniform(0.9, 1.1, (ZONES, corners))
    x0, y0 = centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)
    x1, y1 = np.roll(x0, -1, axis=1), np.roll(y0, -1, axis=1)
    return x0, y0, y1, (x1 - x0) / (y1 - y0)


@dataclass(frozen=True)
class Speeds:
    """How fast each taxi gets through the streets, over all its drives. Runs on workers."""

    city: City
    STATE: ClassVar = {"drives": int, "km": float, "seconds": float}
    OUTPUT: ClassVar = {"taxi": int, "drives": int, "km_h": float}

    def __call__(self, groups: Groups) -> Reduced:
        where, on_street = _numbers(groups, "x0", "y0", "x1", "y1", "seconds"), self.city.on_street
        km = np.zeros(groups.rows.num_rows)
        for row, (x0, y0, x1, y1, _) in enumerate(where):
            (ax, ay), (bx, by) = on_street(x0, y0), on_street(x1, y1)
            km[row] = abs(bx - ax) + abs(by - ay)
        state = pa.table(
            {
                "drives": _added(groups, "drives", np.ones(len(km))).astype(np.int64),
                "km": _added(groups, "km", km),
                "seconds": _added(groups, "seconds", where[:, 4]),
            }
        )
        km_h = state["km"].to_numpy() / state["seconds"].to_numpy() * 3600
        return Reduced(state, pa.table({"taxi": groups.keys["taxi"], "drives": state["drives"], "km_h": km_h}))


@dataclass(frozen=True)
class Zones:
    """How many of each taxi's drives led from one zone to another. Runs on workers."""

    city: City
    STATE: ClassVar = {"drives": int, "crossings": int}
    OUTPUT: ClassVar = {"taxi": int, "drives": int, "crossings": int}

    def __call__(self, groups: Groups) -> Reduced:
        where, zone = _numbers(groups, "x0", "y0", "x1", "y1"), self.city.zone
        crossings = np.array([zone(x0, y0) != zone(x1, y1) for x0, y0, x1, y1 in where], np.float64)
        state = pa.table(
            {
                "drives": _added(groups, "drives", np.ones(len(where))).astype(np.int64),
                "crossings": _added(groups, "crossings", crossings).astype(np.int64),
            }
        )
        return Reduced(state, state.add_column(0, "taxi", groups.keys["taxi"]))


def _numbers(groups: Groups, *columns: str) -> Floats:
    """Some columns of the rows as a matrix."""
    return np.column_stack([groups.rows[name].to_numpy() for name in columns])


def _added(groups: Groups, column: str, more: Floats) -> Floats:
    """By key: what its state had in a column, and what its rows add."""
    before = np.where(groups.known, groups.state[column].fill_null(0).to_numpy(), 0)
    return before + np.bincount(groups.group_of_row, more, len(groups))

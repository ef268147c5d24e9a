"""Keys whose true counts, sums and means are known, some of their rows shed, and whose intervals hold the truth.

No Spark: rows go through the keyed step's own code, epoch by epoch, some shed by a hash of row and epoch. Beside
it is the plain way: scale up by 1/p, and take 1.96 standard deviations of that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates.estimate import HIGH, LOW
from springtide.state.aggregates.sample import Z
from springtide.state.chain import Chain
from springtide.state.logic import Moment
from springtide.state.position import positions
from springtide.state.run import Run
from springtide.state.update import update
from springtide.state.xxhash import hash_integers

SLICES = 16
PARTS = 2
"""Rows of an epoch arrive in two parts, which are combined where they meet."""
SIGMAS = {"uniform": 0.0, "lognormal": 1.0, "skewed": 1.5}
"""By values: the deviation of their logarithms; those without one are uniform."""
KEY = pa.schema([("key", pa.int64())])
ROWS = pa.schema([*KEY, *((name, pa.float64()) for name in SIGMAS)])
COUNT = "count"
RESULTS = (COUNT, *(f"{what}_{values}" for what in ("sum", "mean") for values in SIGMAS))
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Held = dict[str, Mask]
"""By result: for each key, whether the interval holds the truth."""


@dataclass(frozen=True)
class Outcome:
    """The keys that showed up, by their true number of rows, and whose intervals hold, ours and the plain ones."""

    rows: Integers
    given: Mask
    """The keys whose sums and means have an interval; counts always do."""
    ours: Held
    plain: Held

    def with_interval(self, result: str) -> Mask:
        """The keys whose result has an interval."""
        return np.ones(len(self.rows), np.bool_) if result == COUNT else self.given

    def covers(self, held: Held, result: str, some: Mask | None = None) -> float | None:
        """The share of intervals, of all keys or of some, that hold the truth; None if there are none."""
        keys = self.with_interval(result) if some is None else self.with_interval(result) & some
        return float(held[result][keys].mean()) if keys.any() else None


def outcome(sizes: Integers, kept: Sequence[float], random: np.random.Generator) -> Outcome:
    """Offer each key its rows in random epochs, one for each kept share, shed some, and compare with all."""
    key = np.repeat(np.arange(len(sizes)), sizes)
    epoch = random.integers(0, len(kept), len(key))
    chance = np.array(kept)[epoch]
    seen = np.flatnonzero(_shares(np.arange(len(key)), epoch) < chance)
    shown = np.unique(key[seen])
    columns: dict[str, Floats] = {}
    truths: dict[str, Floats] = {COUNT: sizes[shown].astype(np.float64)}
    for name, sigma in SIGMAS.items():
        values = np.exp(sigma * random.normal(size=len(key))) if sigma else random.random(len(key))
        columns[name] = values[seen]
        truths[f"sum_{name}"] = _totals(key, values, len(sizes))[shown]
        truths[f"mean_{name}"] = truths[f"sum_{name}"] / sizes[shown]
    found = _through_the_step(pa.table({"key": key[seen], **columns}, schema=ROWS), epoch[seen], kept)
    ours = {n: _holds(found.column(n + LOW).to_numpy(), found.column(n + HIGH).to_numpy(), truths[n]) for n in RESULTS}
    bounds = _plain(key[seen], columns, chance[seen], len(sizes))
    plain = {n: _holds(low[shown], high[shown], truths[n]) for n, (low, high) in bounds.items()}
    given = found.column(f"sum_skewed{LOW}").is_valid().to_numpy()
    return Outcome(sizes[shown], given, ours, plain)


def _through_the_step(rows: pa.Table, epochs: Integers, kept: Sequence[float]) -> pa.Table:
    """Each key's last output row, by key."""
    wanted = {COUNT: agg.count(estimate=True)}
    for name in SIGMAS:
        wanted |= {f"sum_{name}": agg.sum(name, estimate=True), f"mean_{name}": agg.mean(name, estimate=True)}
    logic = AggregateLogic(KEY, ROWS, wanted, SLICES)
    runs: list[Run] = []
    outputs: list[pa.Table] = []
    for number, share in enumerate(kept):
        moment = Moment(kept=share)
        arrivals = []
        for part in np.array_split(np.flatnonzero(epochs == number), PARTS):
            some = rows.take(pa.array(part))
            key = some.column("key").combine_chunks()
            where = positions(hash_integers(key), SLICES)
            arrivals.append(logic.arrive(where, [key], some.select(list(logic.columns)), moment).rows)
        updated = update(logic, Chain(runs, logic.layout), arrivals, moment)
        gone = {run.name for run in updated.replaced}
        runs = [run for run in runs if run.name not in gone]
        runs += [] if updated.run is None else [Run(updated.run, logic.layout, SLICES, f"run {number}")]
        outputs.append(updated.output)
    every = pa.concat_tables(outputs[::-1])
    _, newest = np.unique(every.column("key").to_numpy(), return_index=True)
    return every.take(pa.array(newest))


def _plain(key: Integers, columns: Mapping[str, Floats], p: Floats, keys: int) -> dict[str, tuple[Floats, Floats]]:
    """By result: lower and upper bounds by key, for whoever scales up and trusts the normal distribution."""

    def total(x: Floats) -> Floats:
        return _totals(key, x, keys)

    def around(middle: Floats, variance: Floats) -> tuple[Floats, Floats]:
        reach = Z * np.sqrt(np.maximum(variance, 0.0))
        return middle - reach, middle + reach

    weight = (1 - p) / p**2
    count, spread = total(1 / p), total(weight)
    found = {COUNT: around(count, spread)}
    for name, x in columns.items():
        scaled, first, second = total(x / p), total(x * weight), total(x**2 * weight)
        with np.errstate(invalid="ignore"):
            mean = scaled / count
            deviations = second - 2 * mean * first + mean**2 * spread
            found |= {f"sum_{name}": around(scaled, second), f"mean_{name}": around(mean, deviations / count**2)}
    return found


def _totals(key: Integers, x: Floats, keys: int) -> Floats:
    return np.bincount(key, x, keys).astype(np.float64, copy=False)


def _shares(rows: Integers, epochs: Integers) -> Floats:
    """A number from 0 to 1 for each row, by a hash of row and epoch: the row is shed above the kept share."""
    mixed = hash_integers(pa.array(hash_integers(pa.array(rows)) + epochs))
    return (mixed.view(np.uint64) >> np.uint64(11)).astype(np.float64) / 2.0**53


def _holds(low: Floats, high: Floats, truth: Floats) -> Mask:
    slack = 1e-9 * np.abs(truth)
    held: Mask = (low - slack <= truth) & (truth <= high + slack)
    return held

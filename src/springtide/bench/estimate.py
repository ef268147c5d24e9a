"""How often the 95 % intervals of estimates hold the truth when half of the rows are shed.

No Spark: rows go through the keyed step's own code, epoch by epoch, some shed by a hash of row and epoch. Beside
it is the plain way: scale up by 1/p, and take 1.96 standard deviations of that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.bench.figures import Findings, rounded
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
"""Rows of an epoch arrive in so many parts, combined where they meet."""
WANTED = (0.93, 0.97)
SIZES = (4, 6, 9, 15, 30, 60, 120, 250, 500)
VALUES = ("uniform", "lognormal")
KEY = pa.schema([("key", pa.int64())])
ROWS = pa.schema([*KEY, *((name, pa.float64()) for name in VALUES)])
Held = dict[str, npt.NDArray[np.bool_]]
"""By result: for each key, whether the interval holds the truth."""


@dataclass(frozen=True)
class Outcome:
    """The keys that showed up, by their true number of rows, and whose intervals hold, ours and the plain ones."""

    rows: npt.NDArray[np.int64]
    ours: Held
    plain: Held


@dataclass(frozen=True)
class EstimateBench:
    keys: int = 40_000
    epochs: int = 6
    kept: float = 0.5
    seed: int = 11

    def run(self) -> Findings:
        random = np.random.default_rng(self.seed)
        even = np.exp(random.uniform(np.log(SIZES[0]), np.log(SIZES[-1]), self.keys)).astype(np.int64)
        zipf = (SIZES[0] / (1.0 - random.random(self.keys) * (1.0 - SIZES[0] / SIZES[-1]))).astype(np.int64)
        steady, swaying = [self.kept] * self.epochs, [self.kept * (0.7, 1.0, 1.3)[e % 3] for e in range(self.epochs)]
        outcomes = {
            "steady": self._outcome(even, steady, random),
            "zipf": self._outcome(zipf, steady, random),
            "swaying": self._outcome(even, swaying, random),
        }
        return self._findings(outcomes)

    def _outcome(self, sizes: npt.NDArray[np.int64], kept: list[float], random: np.random.Generator) -> Outcome:
        """Offer each key its rows in random epochs, shed some, and compare with all."""
        key = np.repeat(np.arange(len(sizes)), sizes)
        epoch = random.integers(0, self.epochs, len(key))
        values = {"uniform": random.random(len(key)), "lognormal": np.exp(random.normal(size=len(key)))}
        chance = np.array(kept)[epoch]
        seen = _shares(np.arange(len(key)), epoch) < chance
        rows = pa.table({"key": key, **values}, schema=ROWS)
        state = _through_the_step(rows, [np.flatnonzero(seen & (epoch == e)) for e in range(self.epochs)], kept)
        shown = np.array(sorted(state))
        truths = {"n": sizes[shown], **{name: np.bincount(key, values[name])[shown] for name in VALUES}}
        ours = {name: _held(truth, [state[k] for k in shown.tolist()], name) for name, truth in truths.items()}
        plain = {}
        for name, truth in truths.items():
            x = values.get(name, np.ones(len(key)))[seen]
            p = chance[seen]
            scaled = np.bincount(key[seen], x / p, len(sizes))[shown]
            deviation = np.sqrt(np.bincount(key[seen], x**2 * (1 - p) / p**2, len(sizes))[shown])
            plain[name] = np.abs(scaled - truth) <= Z * deviation + 1e-9 * np.abs(truth)
        return Outcome(sizes[shown], ours, plain)

    def _findings(self, outcomes: dict[str, Outcome]) -> Findings:
        figures: dict[str, float | int | str] = {}
        table: list[list[str]] = []
        for name, outcome in outcomes.items():
            at = "" if name == "steady" else f"_{name}"
            for held, by in ((outcome.ours, "coverage"), (outcome.plain, "plain_coverage")):
                figures[f"{by}_count{at}"] = rounded(float(held["n"].mean()))
                figures[f"{by}_sum{at}"] = rounded(float(np.mean([held[v] for v in VALUES])))
            table.append(_row(f"all keys, {name}", outcome, np.ones(len(outcome.rows), np.bool_)))
            if name == "steady":
                table += [_row(f"keys of {a} to {b - 1} rows", outcome, mask) for a, b, mask in _classes(outcome.rows)]
        figures |= {"wanted_from": WANTED[0], "wanted_to": WANTED[1], "keys": self.keys, "kept": self.kept}
        headers = ["keys", "count", "plain", *(h for v in VALUES for h in (f"sum, {v}", "plain"))]
        steady = outcomes["steady"]

        def draw(axes: Any) -> None:
            classes = list(_classes(steady.rows))
            middles = [(a * b) ** 0.5 for a, b, _ in classes]
            for held, style, way in ((steady.ours, "-", "springtide"), (steady.plain, "--", "plain")):
                for color, name in enumerate(held):
                    shares = [float(held[name][mask].mean()) for _, _, mask in classes]
                    label = f"{'count' if name == 'n' else f'sum, {name}'}: {way}"
                    axes.plot(middles, shares, style, marker="o", color=f"C{color}", label=label)
            axes.axhspan(*WANTED, color="grey", alpha=0.2, label="wanted")
            title = f"Intervals that hold the truth, {1 - self.kept:.0%} of rows shed"
            axes.set(title=title, xscale="log", xlabel="true rows of a key", ylabel="share of keys", ylim=(None, 1.0))
            axes.legend(ncols=2)

        return Findings("estimate", headers, table, figures, draw)


def _through_the_step(
    rows: pa.Table, epochs: list[npt.NDArray[np.int64]], kept: list[float]
) -> dict[int, dict[str, Any]]:
    """Each key's last output row."""
    sums = {name: agg.sum(name, estimate=True) for name in VALUES}
    logic = AggregateLogic(KEY, ROWS, {"n": agg.count(estimate=True), **sums}, SLICES)
    runs: list[Run] = []
    outputs: list[pa.Table] = []
    for picked, share in zip(epochs, kept, strict=True):
        moment = Moment(kept=share)
        arrivals = []
        for part in np.array_split(picked, PARTS):
            some = rows.take(pa.array(part))
            key = some.column("key").combine_chunks()
            where = positions(hash_integers(key), SLICES)
            arrivals.append(logic.arrive(where, [key], some.select(list(logic.columns)), moment).rows)
        updated = update(logic, Chain(runs, logic.layout), arrivals, moment)
        gone = {run.name for run in updated.replaced}
        runs = [run for run in runs if run.name not in gone]
        runs += [] if updated.run is None else [Run(updated.run, logic.layout, SLICES, f"run {len(outputs)}")]
        outputs.append(updated.output)
    return {row["key"]: row for output in outputs for row in output.to_pylist()}


def _shares(rows: npt.NDArray[np.int64], epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each row, by a hash of row and epoch: the row is shed above the kept share."""
    mixed = hash_integers(pa.array(hash_integers(pa.array(rows)) + epochs))
    return (mixed.view(np.uint64) >> np.uint64(11)).astype(np.float64) / 2.0**53


def _held(truth: npt.NDArray[Any], found: list[dict[str, Any]], name: str) -> npt.NDArray[np.bool_]:
    low, high = (np.array([row[name + suffix] for row in found], np.float64) for suffix in (LOW, HIGH))
    slack = 1e-9 * np.abs(truth)
    return (low - slack <= truth) & (truth <= high + slack)  # type: ignore[no-any-return]


def _classes(rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, npt.NDArray[np.bool_]]]:
    for a, b in pairwise(SIZES):
        yield a, b, (rows >= a) & (rows < b)


def _row(title: str, outcome: Outcome, mask: npt.NDArray[np.bool_]) -> list[str]:
    shares = (held[name][mask].mean() for name in outcome.ours for held in (outcome.ours, outcome.plain))
    return [title, *(f"{share:.3f}" for share in shares)]

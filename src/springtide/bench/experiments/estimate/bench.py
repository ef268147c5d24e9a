"""How often the 95 % intervals of estimates hold the truth, by the share of rows that is kept and the values' skew."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from springtide.bench.experiments.estimate.keys import COUNT, RESULTS, Held, Integers, Outcome, outcome
from springtide.bench.harness.findings import Figure, Findings, rounded
from springtide.present.numbers import NONE

WANTED = (0.93, 0.98)
SHARES = {0.5: "05", 0.2: "02", 0.05: "005"}
"""Kept shares, and what they are called in the figures."""
SWAY = (0.7, 1.0, 1.3)
EVEN, LARGE = (4, 500), (500, 20_000)
CLASSES = (4, 9, 15, 30, 60, 120, 250, 500, 1000, 2000, 5000, 10_000, 20_000)
FEWEST = 50
"""Keys of a class, for a point in the picture."""
HEADERS = ("keys, kept", "given", COUNT, *(f"{what}, skew {n}" for what in ("sum", "mean") for n in (0, 6, 33)))
"""The skew is that of uniform values, and of lognormal ones with sigma 1 and 1.5."""


@dataclass(frozen=True)
class Experiment:
    sizes: str
    kept: float
    sways: bool
    outcome: Outcome

    @property
    def title(self) -> str:
        least, most = (self.kept * SWAY[i] for i in (0, -1))
        return f"{self.sizes}, {least:g} to {most:g}" if self.sways else f"{self.sizes}, {self.kept:g}"

    @property
    def suffix(self) -> str:
        """What tells its figures from those of even sizes."""
        return "_swaying" if self.sways else "" if self.sizes == "even" else f"_{self.sizes.lower()}"


@dataclass(frozen=True)
class EstimateBench:
    keys: int = 40_000
    epochs: int = 6
    seed: int = 11

    def run(self) -> Findings:
        random = np.random.default_rng(self.seed)
        done = [
            Experiment(sizes, kept, sways, outcome(self._sizes(sizes, kept, random), self._shares(kept, sways), random))
            for sizes, kept, sways in (
                *(("even", kept, False) for kept in SHARES),
                ("even", 0.5, True),
                *((sizes, kept, False) for sizes in ("Zipf", "large") for kept in SHARES),
            )
        ]
        table = [_row(e.title, e.outcome, held) for e in done for held in (e.outcome.ours, e.outcome.plain)]
        for plain in table[1::2]:
            plain[:2] = ["  the plain way", ""]
        return Findings("estimate", HEADERS, table, self._figures(done), lambda axes: _draw(axes, done))

    def _sizes(self, name: str, kept: float, random: np.random.Generator) -> Integers:
        """True numbers of rows. If little is kept, few keys of Zipf's sizes get an interval: there are more of them."""
        if name == "Zipf":
            chance = random.random(int(self.keys * 0.5 / kept))
            return (EVEN[0] / (1.0 - chance * (1.0 - EVEN[0] / EVEN[1]))).astype(np.int64)
        (least, most), keys = (LARGE, self.keys // 40) if name == "large" else (EVEN, self.keys)
        return np.exp(random.uniform(np.log(least), np.log(most), keys)).astype(np.int64)

    def _shares(self, kept: float, sways: bool) -> list[float]:
        return [kept * SWAY[e % len(SWAY)] if sways else kept for e in range(self.epochs)]

    def _figures(self, done: list[Experiment]) -> dict[str, Figure]:
        figures: dict[str, Figure] = {}
        for e in done:
            at = f"_{SHARES[e.kept]}{e.suffix}"
            for held, by in ((e.outcome.ours, "coverage"), (e.outcome.plain, "plain_coverage")):
                shares = {result: e.outcome.covers(held, result) for result in RESULTS}
                figures |= {f"{by}_{r}{at}": None if s is None else rounded(s) for r, s in shares.items()}
            for what in ("sum", "mean"):
                figures[f"given_{what}{at}"] = rounded(float(e.outcome.given.mean()))
        return figures | {"wanted_from": WANTED[0], "wanted_to": WANTED[1], "keys": self.keys}


def _row(title: str, found: Outcome, held: Held) -> list[str]:
    shares = (found.covers(held, result) for result in RESULTS)
    return [title, f"{found.given.mean():.3f}", *(NONE if s is None else f"{s:.3f}" for s in shares)]


def _draw(axes: Any, done: list[Experiment]) -> None:
    """The sums of the most skewed values, by the size of a key, and its count."""
    for color, kept in enumerate(SHARES):
        outcomes = [e.outcome for e in done if e.kept == kept and e.sizes in ("even", "large") and not e.sways]
        _line(axes, outcomes, "sum_skewed", color, f"sum, {kept:.0%} kept")
    _line(axes, [e.outcome for e in done if e.title == "even, 0.5"], COUNT, len(SHARES), "count, 50% kept")
    axes.axhspan(*WANTED, color="grey", alpha=0.2, label="wanted")
    axes.plot([], [], "k--", label="the plain way")
    axes.set(
        title="Intervals that hold the truth; sums of lognormal values, sigma 1.5",
        xscale="log",
        xlabel="true rows of a key",
        ylabel="share of the keys with an interval",
        ylim=(0.75, 1.0),
    )
    axes.legend(ncols=2)


def _line(axes: Any, outcomes: list[Outcome], result: str, color: int, label: str) -> None:
    for ours in (True, False):
        middles, shares = [], []
        for found in outcomes:
            for least, most in pairwise(CLASSES):
                some = (found.rows >= least) & (found.rows < most)
                share = found.covers(found.ours if ours else found.plain, result, some)
                if share is not None and (some & found.with_interval(result)).sum() >= FEWEST:
                    middles.append((least * most) ** 0.5)
                    shares.append(share)
        axes.plot(middles, shares, "-" if ours else "--", marker="o", color=f"C{color}", label=label if ours else None)

"""The experiment on estimates: intervals hold as often as promised, and more often than the plain ones."""

from springtide.bench.experiments.estimate.bench import SHARES, EstimateBench
from springtide.bench.experiments.estimate.keys import RESULTS

CHANCE = 0.02
"""What a smaller experiment may be off by: of 800 keys that get an interval at the smallest share, 2.6 deviations."""


def test_intervals_hold_as_promised() -> None:
    found = EstimateBench(keys=12_000).run()
    figures = {name: value for name, value in found.figures.items() if isinstance(value, float)}
    for share in SHARES.values():
        for result in RESULTS:
            name = f"{result}_{share}"
            assert 0.93 - CHANCE <= figures[f"coverage_{name}"] <= 0.98 + CHANCE
        for result in ("sum_skewed", "mean_skewed"):
            assert figures[f"plain_coverage_{result}_{share}"] < figures[f"coverage_{result}_{share}"] - 0.05
    assert figures["given_sum_05"] > figures["given_sum_02"] > figures["given_sum_005"] > 0
    assert figures["given_mean_05_large"] == 1.0
    assert [len(row) for row in found.rows] == [len(found.headers)] * 20

"""The experiment on estimates: intervals hold as often as promised, and more often than the plain ones."""

from springtide.bench.estimate import EstimateBench


def test_intervals_hold_as_promised() -> None:
    figures = EstimateBench(keys=4_000).run().figures
    for name in ("coverage_count", "coverage_sum", "coverage_count_swaying", "coverage_sum_swaying"):
        assert 0.93 <= float(figures[name]) <= 0.97
        assert float(figures[f"plain_{name}"]) < float(figures[name])

"""The results as figures, as a table of 80 columns, and as a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from springtide.bench.experiments.nexmark.result import FLINK, OURS, SPARK, Result, geomean, ratios, supported, wrong
from springtide.bench.harness.findings import Figure, Figures, Findings, rounded
from springtide.present.numbers import NONE, number

HEADERS = ("query", "rows/s", "spark rows/s", "× spark", "flink rows/s", "× flink", "state MB", "equal")
COLOURS = {OURS: "tab:blue", SPARK: "tab:orange", FLINK: "tab:green"}


def findings(results: Sequence[Result], load: Mapping[str, Figures], remarks: Sequence[str] = ()) -> Findings:
    """All that is to be told, with figures of the load, and remarks on all of it."""
    with_spark, with_flink = ratios(results, SPARK), ratios(results, FLINK)
    figures: dict[str, Figures] = {
        "queries": {result.query.name: of_query(result) for result in results},
        "supported": supported(results),
        "wrong": wrong(results),
        "geomean_spark": _rounded(geomean(with_spark)),
        "geomean_flink": _rounded(geomean(with_flink)),
        "worst_stateful_vs_spark": _rounded(min(with_spark, default=None)),
        "worst_stateful_vs_flink": _rounded(min(with_flink, default=None)),
        **load,
    }

    def draw(axes: Any) -> None:
        _bars(axes, results)

    return Findings("nexmark", HEADERS, _table(results), figures, draw, [*remarks, *notes(results)])


def of_query(result: Result) -> dict[str, Figure]:
    """The figures of one query; None of whoever did not run it."""
    return {
        "rows_per_s": _rounded(result.rows_per_s(OURS)),
        "spark_rows_per_s": _rounded(result.rows_per_s(SPARK)),
        "flink_rows_per_s": _rounded(result.rows_per_s(FLINK)),
        "equal": result.of(OURS).equal,
        "spark_equal": result.of(SPARK).equal,
        "flink_equal": result.of(FLINK).equal,
        "stateful": result.query.stateful,
        "state_mb": _rounded(result.state_mb(OURS)),
        "spark_state_mb": _rounded(result.state_mb(SPARK)),
    }


def _table(results: Sequence[Result]) -> list[list[str]]:
    """A row for each query."""
    return [
        [
            result.query.name,
            number(result.rows_per_s(OURS)),
            number(result.rows_per_s(SPARK)),
            _times(result.ratio(SPARK)),
            number(result.rows_per_s(FLINK)),
            _times(result.ratio(FLINK)),
            NONE if (state := result.state_mb(OURS)) is None else f"{state:.1f}",
            _equal(result),
        ]
        for result in results
    ]


def _equal(result: Result) -> str:
    """Whose rows are the oracle's: "yes", or who gave others."""
    others = [name for name in (OURS, SPARK, FLINK) if result.of(name).equal is False]
    if others:
        return f"not {', '.join(others)}"
    return NONE if result.of(OURS).equal is None else "yes"


def notes(results: Sequence[Result]) -> list[str]:
    """A line for each query that somebody did not run or got wrong: who, and why."""
    return [
        f"{result.query.name}, {name}: {outcome.why_not}"
        for result in results
        for name, outcome in result.outcomes.items()
        if outcome.why_not is not None
    ]


def _bars(axes: Any, results: Sequence[Result]) -> None:
    """A group of bars a query; a missing one means that it was not run."""
    names = [name for name in (OURS, SPARK, FLINK) if any(result.of(name).turns for result in results)]
    width = 0.8 / max(len(names), 1)
    for place, name in enumerate(names):
        at = [number + (place - (len(names) - 1) / 2) * width for number in range(len(results))]
        axes.bar(at, [result.rows_per_s(name) or 0.0 for result in results], width, label=name, color=COLOURS[name])
    axes.set_xticks(range(len(results)), [result.query.name for result in results], fontsize=8)
    axes.set(title="Nexmark, 2 cores", ylabel="rows/s", yscale="log")
    if names:
        axes.legend()


def _times(ratio: float | None) -> str:
    return NONE if ratio is None else f"{ratio:.2f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)

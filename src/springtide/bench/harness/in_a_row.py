"""Several runs of one experiment, side by side."""

from collections.abc import Sequence
from dataclasses import replace

from springtide.bench.harness.findings import Findings
from springtide.present.numbers import NONE


def in_a_row(runs: Sequence[Findings], *, worst_by: str) -> Findings:
    """A column for each run, and each figure as the list of its values; the picture is that of the worst run.

    A single run stays as it is. The worst one has the highest `worst_by`, or none at all.
    """
    if len(runs) == 1:
        return runs[0]
    names = dict.fromkeys(name for run in runs for name in run.figures)
    figures = {name: [run.figures.get(name) for run in runs] for name in names}
    rows = [
        [name.replace("_", " "), *(NONE if v is None else f"{v}" for v in found)] for name, found in figures.items()
    ]
    worst = max(runs, key=lambda run: _height(run.figures.get(worst_by)))
    return replace(
        worst, headers=["", *(f"run {number + 1}" for number in range(len(runs)))], rows=rows, figures=figures
    )


def _height(value: object) -> float:
    return value if isinstance(value, int | float) else float("inf")

"""Several runs of one experiment, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from springtide.bench.harness.findings import Figure, Findings
from springtide.present.numbers import NONE


def in_a_row(runs: Sequence[Findings], *, worst_by: str) -> Findings:
    """A column for each run, and each figure as the list of its values; the picture is that of the worst run.

    A single run stays as it is. The worst one has the highest `worst_by`, or none at all.
    """
    if len(runs) == 1:
        return runs[0]
    names = dict.fromkeys(name for run in runs for name in run.figures)
    found = {name: [_figure(run, name) for run in runs] for name in names}
    rows = [
        [name.replace("_", " "), *(NONE if value is None else f"{value}" for value in of)] for name, of in found.items()
    ]
    headers = ["", *(f"run {number}" for number in range(1, len(runs) + 1))]
    worst = max(runs, key=lambda run: _height(_figure(run, worst_by)))
    return replace(worst, headers=headers, rows=rows, figures=dict(found))


def _figure(run: Findings, name: str) -> Figure:
    found = run.figures.get(name)
    if isinstance(found, list | Mapping):
        raise TypeError(f"{name}: expected the figure of one run, got {len(found)} of them")
    return found


def _height(value: Figure) -> float:
    return value if isinstance(value, int | float) else float("inf")

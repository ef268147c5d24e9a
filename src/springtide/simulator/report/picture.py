"""Pictures of runs: one column a run, with what fell due and was processed, what waited, and who worked."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from springtide.simulator.report.story import FAILURE, MIGRATION
from springtide.simulator.simulate import Run

MOST = 4
"""Runs side by side; more of them go below."""


def draw(runs: Sequence[Run], path: Path) -> None:
    """Save a picture of these runs."""
    # Here, as it is an extra that a simulation does without.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(len(runs), MOST)
    bands = -(-len(runs) // columns)
    width = max(8.0, 1.5 + 4.2 * columns)
    figure, grid = pyplot.subplots(
        3 * bands,
        columns,
        figsize=(width, 6.2 * bands),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for i, run in enumerate(runs):
        band, column = divmod(i, columns)
        _column(run, [grid[3 * band + row][column] for row in range(3)], labelled=column == 0)
    for row in range(3):
        for unused in range(len(runs), bands * columns):
            grid[3 * (bands - 1) + row][unused % columns].set_visible(False)
    figure.suptitle("\n".join(wrap(runs[0].scenario.title, int(12 * width))), fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _column(run: Run, axes: list[Any], *, labelled: bool) -> None:
    samples = run.story.samples
    scale, unit = (3600.0, "hours") if run.scenario.duration_s > 7200 else (1.0, "seconds")
    at = [sample.at_s / scale for sample in samples]
    rates, waits, last = axes
    rates.plot(at, [s.arriving for s in samples], color="0.6", label="fell due")
    rates.plot(at, [s.processed for s in samples], color="tab:blue", linewidth=1, label="processed")
    # A backlog that is worked off in one stroke would hide the rest.
    rates.set_ylim(0, 2.2 * max(1.0, *(s.arriving for s in samples)))
    rates.set_title(f"{run.scenario.name}: {run.policy}", fontsize=9)
    waits.plot(at, [s.lag_s for s in samples], color="tab:orange")
    waits.set_ylim(bottom=0)
    meaning = _last_row(run, last, at)
    last.set_ylim(bottom=0)
    last.set_xlabel(unit)
    for event in run.story.events:
        if event.kind == MIGRATION:
            for axis in axes:
                axis.axvspan(event.details["began_s"] / scale, event.at_s / scale, color="tab:green", alpha=0.12, lw=0)
        elif event.kind == FAILURE:
            waits.axvline(event.at_s / scale, color="tab:red", linewidth=0.5, alpha=0.6)
    if labelled:
        rates.set_ylabel("rows a second")
        waits.set_ylabel("seconds behind")
        last.set_ylabel(meaning)
        rates.legend(fontsize=8, loc="upper right")


def _last_row(run: Run, axis: Any, at: list[float]) -> str:
    """What a run is about: instances by operator, rows between hosts, or workers; in words."""
    samples = run.story.samples
    if samples[-1].parallelism:
        for name in samples[-1].parallelism:
            axis.step(at, [s.parallelism[name] for s in samples], where="post", label=name)
        axis.legend(fontsize=8)
        return "instances"
    if any(sample.remote for sample in samples):
        axis.plot(at, [100 * s.remote for s in samples], color="tab:purple")
        axis.set_ylim(0, 100)
        return "% to other hosts"
    axis.step(at, [s.workers for s in samples], where="post", color="tab:green")
    return "workers"

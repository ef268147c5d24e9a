"""`springtide simulate`: a scenario on a modelled cluster."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from springtide.cli.shared.app_target import find_checkpoint
from springtide.cli.shared.options import Traceback
from springtide.engine.lifecycle.report_log import last_reports
from springtide.present.numbers import NONE, decimal, in_short, number, size
from springtide.present.pictures import NO_PICTURE, can_draw
from springtide.present.tables import FittingTable, plain_table
from springtide.simulator.calibrate import Fit, calibrated, fit, validate
from springtide.simulator.report.picture import draw
from springtide.simulator.report.story import Summary
from springtide.simulator.scenario.policy import choose
from springtide.simulator.scenario.scenario import Scenario
from springtide.simulator.scenario.shipped import find, shipped
from springtide.simulator.simulate import Run
from springtide.simulator.simulate import simulate as run_scenario

REPORTS = 1_000
"""Epochs that a calibration looks at."""

FIGURES: Mapping[str, Callable[[Summary], str]] = {
    "steps up": lambda s: number(s.steps_up),
    "steps down": lambda s: number(s.steps_down),
    "slices moved": lambda s: number(s.rebalances),
    "stable after": lambda s: "never" if s.stable_s is None else f"{s.stable_s:,.0f} s",
    "workers at the end": lambda s: number(s.workers),
    "more at most": lambda s: number(s.overshoot),
    "core hours": lambda s: decimal(s.core_s / 3600),
    "rows/s": lambda s: number(s.throughput),
    "slots busy": lambda s: f"{100 * s.busy:.0f} %",
    "to other hosts": lambda s: f"{100 * s.remote:.0f} %",
    "most behind": lambda s: f"{s.most_lag_s:,.1f} s",
    "workers lost": lambda s: number(s.failures),
    "results again after": lambda s: NONE if s.recovery_s is None else f"{s.recovery_s:,.1f} s",
    "went back": lambda s: number(s.went_back),
    "rows repeated": lambda s: in_short(s.repeated_rows),
    "rows offered": lambda s: in_short(s.offered),
    "processed": lambda s: in_short(s.processed),
    "waiting": lambda s: in_short(s.waiting),
    "lost": lambda s: number(s.lost),
    "doubled": lambda s: number(s.doubled),
}
"""What a table tells of each run."""
ALWAYS = ("steps up", "steps down", "lost", "doubled")
NOTHING = ("0", "0 %", NONE)
COLUMNS = 6
"""Runs in one table, so that it fits a terminal."""


def simulate(
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario's file, or the name of a shipped one.", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each run as one JSON object a line.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Where the picture goes.", file_okay=False)] = Path(
        "simulation-results"
    ),
    calibrate: Annotated[
        str | None, typer.Option("--calibrate", help="An app's name or checkpoint: take its measured costs.")
    ] = None,
    validated: Annotated[
        bool, typer.Option("--validate", help="With --calibrate: simulate the recorded epochs and compare.")
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Run a scenario on a modelled cluster of any size: the same policies, plans and migrations."""
    terminal = Console(stderr=as_json)
    if listed:
        terminal.print(_shipped())
        return
    found = None
    if calibrate is not None:
        reports = last_reports(find_checkpoint(calibrate), REPORTS)
        found = fit(reports)
        terminal.print(_fitted(found))
        if validated:
            terminal.print(_errors(validate(reports, found)))
    elif validated:
        raise typer.BadParameter("--validate goes with --calibrate CHECKPOINT")
    if scenario is None:
        if calibrate is None:
            raise typer.BadParameter("expected a scenario, or --list")
        return
    runs = _run(find(scenario), found, terminal)
    for run in runs if as_json else ():
        typer.echo(run.to_json())
    for i in range(0, len(runs), COLUMNS):
        terminal.print(_table(runs[i : i + COLUMNS], runs))
    if can_draw():
        picture = out / f"simulation-{Path(scenario).stem}.png"
        draw(runs, picture)
        terminal.print(f"picture: {picture}")
    else:
        terminal.print(NO_PICTURE, markup=False)


def _run(scenarios: Sequence[Scenario], found: Fit | None, terminal: Console) -> list[Run]:
    """All scenarios, each under all its policies."""
    chosen = [(s, name, choose(name, s.control)) for s in scenarios for name in s.control.policies]
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    runs = []
    with Progress(*columns, console=terminal, transient=True) as progress:
        for scenario, name, policy in chosen:
            task = progress.add_task(f"{scenario.name}: {name}", total=scenario.duration_s)
            model = scenario if found is None else calibrated(scenario, found)
            runs.append(run_scenario(model, name, policy, partial(progress.advance, task)))
    return runs


def _table(runs: Sequence[Run], every: Sequence[Run]) -> FittingTable:
    """One column a run; figures that are nothing in every run are left out."""
    summaries, others = [run.summary for run in runs], [run.summary for run in every]
    names = ["", *(_column(run, every) for run in runs)]
    rows = [
        [name, *(value(summary) for summary in summaries)]
        for name, value in FIGURES.items()
        if name in ALWAYS or any(value(summary) not in NOTHING for summary in others)
    ]
    return plain_table(runs[0].scenario.title, names, rows, left=("",))


def _column(run: Run, runs: Sequence[Run]) -> str:
    """What makes a run differ from the others."""
    variant = run.scenario.name.partition(" ")[2]
    several = len({other.policy for other in runs}) > 1
    return " ".join(filter(None, (variant, run.policy if several or not variant else "")))


def _shipped() -> FittingTable:
    rows = [[name, title] for name, title in shipped().items()]
    # Names are for typing: they stay whole, however narrow the terminal.
    return plain_table("shipped scenarios", ["name", "what"], rows, left=("name", "what"), wrapped=("what",))


def _fitted(found: Fit) -> FittingTable:
    rows = [
        [name, f"{1e6 * step.service_s:.2f}", f"{step.selectivity:.3f}", number(step.keys), size(step.key_bytes)]
        for name, step in found.steps.items()
    ]
    names = ["step", "us/row", "rows out/in", "keys", "state/key"]
    title = f"{found.epochs} epochs, {found.overhead_s:.3f} s each whatever its size"
    return plain_table(title, names, rows, left=("step",))


def _errors(errors: dict[str, tuple[float, float]]) -> FittingTable:
    rows = [
        [name, decimal(recorded), decimal(simulated), f"{100 * abs(simulated - recorded) / recorded:.0f} %"]
        if recorded
        else [name, decimal(recorded), decimal(simulated), NONE]
        for name, (recorded, simulated) in errors.items()
    ]
    names = ["figure", "recorded", "simulated", "error"]
    return plain_table("the same rows, simulated with the costs fitted to them", names, rows, left=("figure",))

"""`springtide adapt`: let a running app decide by itself when and how much to change."""

from typing import Annotated, Any

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, Force, HowToMove, command, print_json, reach
from springtide.cli.shared.options import Traceback
from springtide.migration.strategies import DEFAULT


def adapt(
    app: AppName,
    policy: Annotated[str, typer.Option(help="ds2, dhalion, threshold, otd or skew.")] = "ds2",
    minimum: Annotated[int, typer.Option(min=1, help="The least workers.")] = 1,
    maximum: Annotated[
        int | None, typer.Option(min=1, help="The most workers.", show_default="all there is room for")
    ] = None,
    force: Force = False,
    strategy: HowToMove = DEFAULT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and record, and change nothing.")] = False,
    every: Annotated[float | None, typer.Option(metavar="SECONDS", help="How often it decides; default 5.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PERIOD", help="A time of day without a change, in UTC, such as 22:00-06:00; repeatable."),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Adapt no more.")] = False,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="What the app was told, as one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Let a running app change its workers by itself; `springtide history` and `explain` tell what it did and why."""
    client = reach(app, checkpoint)
    if off:
        told = client.rest()
    else:
        wanted: dict[str, Any] = {
            "policy": policy,
            "minimum": minimum,
            "maximum": maximum,
            "strategy": strategy,
            "dry_run": dry_run,
            "excluded": exclude or [],
            "force": force,
        }
        told = client.adapt(wanted if every is None else {**wanted, "interval_s": every})
    if as_json:
        print_json(told)
        return
    if off:
        said = f"{app} no longer adapts by itself"
    else:
        most = "as many as there is room for" if told["maximum"] is None else told["maximum"]
        dry = ", as a dry run" if told["dry_run"] else ""
        said = f"{app} adapts by {told['policy']}, {told['minimum']} to {most} workers{dry}"
    more = command("history", checkpoint or app, None)
    Console().print(f"{said}; {more} tells what it does", markup=False, highlight=False, soft_wrap=True)

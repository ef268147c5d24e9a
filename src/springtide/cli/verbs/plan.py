"""`springtide plan`: which worker owns what in a running app."""

from typing import Annotated, Any

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, print_json, reach
from springtide.cli.shared.options import Traceback
from springtide.present.numbers import NONE
from springtide.present.tables import FittingTable, plain_table


def plan(
    app: AppName,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="The plan as one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show the plan of a running app: the slices that each worker owns, and those it has a replica of."""
    found = reach(app, checkpoint).plan()
    if as_json:
        print_json(found)
        return
    Console().print(plan_table(app, found))


def plan_table(app: str, found: dict[str, Any]) -> FittingTable:
    """One line for each operator and worker that has a part in it, in the plan's order of workers."""
    rows = []
    for name, operator in found["operators"].items():
        owners, replicas = operator["owners"], operator["replicas"]
        for worker in dict.fromkeys([*(w["id"] for w in found["workers"]), *owners, *replicas]):
            if worker in owners or worker in replicas:
                rows.append([name, worker, _ranges(owners.get(worker)), _ranges(replicas.get(worker))])
    title = f"{app}, plan {found['version']} on {len(found['workers'])} workers"
    names = ["step", "worker", "owns", "replicas"]
    # Scattered slices are a long list, and each of them counts.
    return plain_table(title, names, rows, left=names, wrapped=names[2:])


def _ranges(slices: str | None) -> str:
    """Slices with room between them, so that a narrow terminal breaks no number in two."""
    return slices.replace(",", ", ") if slices else NONE

"""`springtide workers`: who works for a running app."""

from typing import Annotated, Any

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, print_json, reach
from springtide.cli.shared.options import Traceback
from springtide.present.numbers import number, size
from springtide.present.tables import FittingTable, plain_table


def workers(
    app: AppName,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line and worker.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show the workers of a running app: where they are, and what they hold."""
    found = reach(app, checkpoint).workers()
    if as_json:
        for worker in found:
            print_json(worker)
        return
    Console().print(workers_table(app, found))


def workers_table(app: str, found: list[dict[str, Any]]) -> FittingTable:
    """One worker a line; `resident` is what its slices and replicas take in its storage."""
    names = ["worker", "host", "zone", "state", "slots", "slices", "replicas", "resident"]
    rows = [
        [
            str(worker["id"]),
            str(worker["host"]),
            str(worker["zone"]),
            str(worker["state"]),
            number(worker["slots"]),
            number(worker["slices"]),
            number(worker["replicas"]),
            size(worker["resident_bytes"]),
        ]
        for worker in found
    ]
    return plain_table(f"workers of {app}", names, rows, ("worker", "host", "zone", "state"))

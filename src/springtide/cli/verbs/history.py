"""`springtide history`: what an app has decided by itself."""

from typing import Annotated

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.control.adapt.ledger import Record, read_ledger
from springtide.policies.decision import Hold, action
from springtide.present.numbers import NONE, decimal, moment
from springtide.present.tables import FittingTable, plain_table


def history(
    app: AppName,
    checkpoint: Checkpoint = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many decisions.")] = 20,
    changes: Annotated[bool, typer.Option("--changes", help="Only those that changed something.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show what an app has decided by itself, running or not; `springtide explain` tells all about one decision."""
    records = read_ledger(find_checkpoint(app, checkpoint))
    shown = [r for r in records if not changes or not isinstance(r.entry.decision, Hold)][-last:]
    if as_json:
        for record in shown:
            print_json(record.to_json())
        return
    if not shown:
        Console().print("nothing was decided yet", markup=False, highlight=False)
        return
    Console().print(history_table(app, shown))


def history_table(app: str, records: list[Record]) -> FittingTable:
    """One decision a line."""
    rows = []
    for record in records:
        entry = record.entry
        held = isinstance(entry.decision, Hold)
        done = f"held: {action(entry.wanted)} vetoed" if held and entry.vetoes else action(entry.decision)
        rows.append(
            [
                str(entry.number),
                moment(entry.at),
                record.policy,
                "warning" if held and getattr(entry.decision, "warning", False) else done,
                entry.outcome.partition(":")[0] or NONE,
                decimal(None if entry.ended_at is None else entry.ended_at - entry.at),
                decimal(entry.pause_s),
                answer(entry.helped),
            ]
        )
    names = ["no", "at", "policy", "decision", "outcome", "took s", "pause s", "helped"]
    left = ("at", "policy", "decision", "outcome", "helped")
    return plain_table(f"decisions of {app}", names, rows, left)


def answer(helped: bool | None) -> str:
    return NONE if helped is None else "yes" if helped else "no"

"""`springtide migrations`: how an app was moved, and what that cost."""

from typing import Annotated

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.control.migration_log import Account, read_migrations
from springtide.present.numbers import decimal, moment, number
from springtide.present.tables import FittingTable, plain_table


def migrations(
    app: AppName,
    checkpoint: Checkpoint = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many migrations.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show how an app was moved, running or not, and how long each move disturbed it.

    In seconds from the request: results flow again (restore), rows of before are out (catch-up), repeated ones are
    (recovery), the output rate is steady. Drain and rebalance tell how long these took.
    """
    shown = read_migrations(find_checkpoint(app, checkpoint))[-last:]
    if as_json:
        for account in shown:
            print_json(account.to_json())
    elif shown:
        Console().print(migrations_table(app, shown))
    else:
        Console().print("nothing was moved yet", markup=False, highlight=False)


def seconds_of(account: Account) -> dict[str, float | None]:
    """The measures of a migration that are times, as people call them."""
    found = account.measures
    return {
        "restore": found.restore_s,
        "drain": found.drain_s,
        "rebalance": found.rebalance_s,
        "catch-up": found.catchup_s,
        "recovery": found.recovery_s,
        "steady": found.stabilise_s,
    }


def migrations_table(app: str, accounts: list[Account]) -> FittingTable:
    """One migration a line."""
    rows = []
    for account in accounts:
        rows.append(
            [
                str(account.number),
                moment(account.course.asked_at),
                account.course.strategy,
                account.what,
                account.state,
                *map(decimal, seconds_of(account).values()),
                number(account.measures.replayed_rows),
            ]
        )
    names = [
        "no",
        "at",
        "strategy",
        "what",
        "state",
        "restore s",
        "drain s",
        "rebalance s",
        "catch-up s",
        "recovery s",
        "steady s",
        "replayed rows",
    ]
    return plain_table(f"migrations of {app}", names, rows, ("at", "strategy", "what", "state"))

"""`springtide cancel-migration`: end the migration of a running app early."""

from typing import Annotated

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, print_json, reach
from springtide.cli.shared.migration_watch import summary
from springtide.cli.shared.options import Traceback


def cancel_migration(
    app: AppName,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="The migration as one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Cancel the migration of a running app; the app goes on, and every slice keeps exactly one owner."""
    cancelled = reach(app, checkpoint).cancel()
    if as_json:
        print_json(cancelled)
        return
    Console().print(summary(cancelled), markup=False, highlight=False, soft_wrap=True)

"""`springtide move`: move slices of a running app to another worker."""

from typing import Annotated

import typer

from springtide.cli.options import Traceback
from springtide.cli.reach import AppName, Checkpoint, HowToMove, NoWait, command, reach
from springtide.cli.watching import Json, follow
from springtide.control.controls import DEFAULT_STRATEGY


def move(
    app: AppName,
    operator: Annotated[str, typer.Option(metavar="STEP", help="The keyed step.", show_default=False)],
    slices: Annotated[str, typer.Option(help="Its slices, such as 3-9 or 0,64-71.", show_default=False)],
    to: Annotated[str, typer.Option(metavar="WORKER", help="The worker to own them.", show_default=False)],
    strategy: HowToMove = DEFAULT_STRATEGY,
    no_wait: NoWait = False,
    checkpoint: Checkpoint = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> None:
    """Move slices of a keyed step to a worker while the app runs; `springtide workers` lists the workers."""
    client = reach(app, checkpoint)
    started = client.move(operator, slices, to, strategy)
    follow(client, started, command("cancel-migration", app, checkpoint), wait=not no_wait, as_json=as_json)

"""`springtide move`: move slices of a running app to another worker."""

from typing import Annotated

import typer

from springtide.cli.shared.app_target import (
    AppName,
    Checkpoint,
    HottestFirst,
    HowToMove,
    NoWait,
    SlicesAnEpoch,
    command,
    reach,
)
from springtide.cli.shared.migration_watch import Json, follow
from springtide.cli.shared.options import Traceback
from springtide.control.api.protocol import Options
from springtide.migration.strategies import DEFAULT


def move(
    app: AppName,
    operator: Annotated[str, typer.Option(metavar="STEP", help="The keyed step.", show_default=False)],
    slices: Annotated[str, typer.Option(help="Its slices, such as 3-9 or 0,64-71.", show_default=False)],
    to: Annotated[str, typer.Option(metavar="WORKER", help="The worker to own them.", show_default=False)],
    strategy: HowToMove = DEFAULT,
    slices_an_epoch: SlicesAnEpoch = None,
    hottest_first: HottestFirst = False,
    no_wait: NoWait = False,
    checkpoint: Checkpoint = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> None:
    """Move slices of a keyed step to a worker while the app runs; `springtide workers` lists the workers."""
    client = reach(app, checkpoint)
    started = client.move(operator, slices, to, strategy, Options(slices_an_epoch, hottest_first))
    follow(client, started, command("cancel-migration", app, checkpoint), wait=not no_wait, as_json=as_json)

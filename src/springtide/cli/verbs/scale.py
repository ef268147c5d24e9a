"""`springtide scale`: let a running app have more or fewer workers."""

from typing import Annotated

import typer

from springtide.cli.shared.app_target import (
    AppName,
    Checkpoint,
    Force,
    HottestFirst,
    HowToScale,
    NoWait,
    SlicesAnEpoch,
    command,
    reach,
)
from springtide.cli.shared.migration_watch import Json, follow
from springtide.cli.shared.options import Traceback
from springtide.control.api.protocol import Options
from springtide.migration.strategies import DEFAULT


def scale(
    app: AppName,
    workers: Annotated[int, typer.Option(min=1, help="How many workers from now on.", show_default=False)],
    strategy: HowToScale = DEFAULT,
    slices_an_epoch: SlicesAnEpoch = None,
    hottest_first: HottestFirst = False,
    force: Force = False,
    no_wait: NoWait = False,
    checkpoint: Checkpoint = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> None:
    """Let a running app have this many workers; it goes on meanwhile."""
    client = reach(app, checkpoint)
    started = client.scale(workers, strategy, Options(slices_an_epoch, hottest_first, force=force))
    follow(client, started, command("cancel-migration", app, checkpoint), wait=not no_wait, as_json=as_json)

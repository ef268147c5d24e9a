"""Reaches a running app by its name."""

import json
from typing import Annotated, Any

import typer

from springtide.app import default_checkpoint
from springtide.control.address import control_directory
from springtide.control.client import ControlClient
from springtide.control.controls import Live, Strategy
from springtide.errors import SpringtideError
from springtide.ids import valid_name

AppName = Annotated[str, typer.Argument(metavar="APP", help="The name of an app that runs.", show_default=False)]
Checkpoint = Annotated[
    str | None, typer.Option(metavar="DIR", help="Where the app keeps its state; default .springtide/APP.")
]
HowToMove = Annotated[Live, typer.Option("--strategy", help="How slices move while the app runs.")]
HowToScale = Annotated[
    Strategy,
    typer.Option(
        "--strategy",
        help="How slices move while the app runs; or, with restart, drain and capture, how it stops and all workers "
        "are replaced.",
    ),
]
SlicesAnEpoch = Annotated[
    int | None, typer.Option(min=1, help="With progressive: how many slices move at once.", show_default="8")
]
HottestFirst = Annotated[
    bool, typer.Option("--hottest-first", help="With progressive: slices with the most rows move first.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Also if there is no room for that many workers on the machine or cluster.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Start the migration, and leave it alone.")]


class AnotherApp(SpringtideError):
    """The app that runs on a checkpoint is not the one that was named."""

    def __init__(self, named: str, found: str, directory: str) -> None:
        super().__init__(named, found, directory)
        self.named, self.found, self.directory = named, found, directory

    def __str__(self) -> str:
        return (
            f"the app that runs on {self.directory} is {self.found!r}, not {self.named!r}: "
            "give its name, or another --checkpoint"
        )


def reach(app: str, checkpoint: str | None) -> ControlClient:
    """The controls of an app that runs on this machine; raises NotRunning or AnotherApp."""
    usual = default_checkpoint(valid_name("app", app))
    directory = control_directory(checkpoint or usual, otherwise=usual)
    client = ControlClient.find(directory)
    if client.app != app:
        raise AnotherApp(app, client.app, str(directory))
    return client


def command(verb: str, app: str, checkpoint: str | None) -> str:
    """What to type for a verb about the same app."""
    return f"springtide {verb} {app}" + (f" --checkpoint {checkpoint}" if checkpoint else "")


def print_json(value: Any) -> None:
    """One line of JSON."""
    typer.echo(json.dumps(value))

"""Finds the app that a person means: a running one by its controls, any one by its checkpoint."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from springtide.app import default_checkpoint
from springtide.blocks.record import PATH as APP_RECORD
from springtide.blocks.store import Store, open_store
from springtide.control.api.address import StillStarting, control_directory
from springtide.control.api.client import ControlClient
from springtide.control.api.presence import Presence
from springtide.errors import SpringtideError
from springtide.ids import valid_name
from springtide.migration.strategies import LIVE, OUR_LIVE, OUR_STOPPING, names
from springtide.migration.strategy import Strategy

AppName = Annotated[
    str, typer.Argument(metavar="APP", help="An app's name, or its checkpoint's path or URL.", show_default=False)
]
Checkpoint = Annotated[
    str | None, typer.Option(metavar="DIR", help="Where the app keeps its state; default .springtide/APP.")
]


def _told(strategies: Iterable[Strategy]) -> str:
    """What each strategy does, a paragraph each."""
    return "\n\n".join(f"{strategy.name}: {strategy.summary}." for strategy in strategies)


def _strategy(known_names: Collection[str], text: str) -> Any:
    """The option `--strategy`, with these names; those of other packages are among them."""

    def known(name: str) -> str:
        if name not in known_names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, known_names))}.")
        return name

    return typer.Option("--strategy", parser=known, metavar="|".join(known_names), help=text)


HowToMove = Annotated[str, _strategy(LIVE, "How slices move while the app runs; see below.")]
HowToScale = Annotated[str, _strategy(names(), "How slices move, or how the app stops; see below.")]
WAYS_TO_MOVE = _told(OUR_LIVE)
WAYS_TO_SCALE = _told((*OUR_LIVE, *OUR_STOPPING))
"""What stands below the options."""
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
    """The app on a checkpoint is not the one that was named."""

    def __init__(self, named: str, found: str, directory: str) -> None:
        super().__init__(named, found, directory)
        self.named, self.found, self.directory = named, found, directory

    def __str__(self) -> str:
        return (
            f"the app on {self.directory} is {self.found!r}, not {self.named!r}: give its name, or another --checkpoint"
        )


class NoCheckpoint(SpringtideError):
    """No app has ever run on a checkpoint in any of these places."""

    def __init__(self, app: str, looked_at: tuple[str, ...]) -> None:
        super().__init__(app, looked_at)
        self.app, self.looked_at = app, looked_at

    def __str__(self) -> str:
        return (
            f"there is no checkpoint of {self.app!r}: looked at {' and '.join(self.looked_at)}. "
            "Give the app's name in the directory where it runs, or say with --checkpoint where it keeps its state"
        )


def reach(app: str, checkpoint: str | None) -> ControlClient:
    """The controls of an app that runs on this machine; raises NotRunning or AnotherApp."""
    is_path = _is_path(app, checkpoint)
    usual = app if is_path else default_checkpoint(app)
    directory = control_directory(checkpoint or usual, otherwise=usual)
    client = ControlClient.find(directory)
    if not is_path and client.app != app:
        raise AnotherApp(app, client.app, str(directory))
    return client


def find_checkpoint(app: str, checkpoint: str | None = None) -> Store:
    """The store of an app, running or not; raises NoCheckpoint, StillStarting or AnotherApp."""
    is_path = _is_path(app, checkpoint)
    places = [checkpoint] if checkpoint is not None else [app] if is_path else [default_checkpoint(app), app]
    for place in places:
        store = open_store(place)
        found = _app_of(store)
        if found is not None:
            if checkpoint is not None and found != app:
                raise AnotherApp(app, found, place)
            return store
        _tell_if_starting(place)
    raise NoCheckpoint(app, tuple(p if "://" in p else str(Path(p).resolve()) for p in places))


def _is_path(app: str, checkpoint: str | None) -> bool:
    """Whether a checkpoint's path or URL was given in place of a name; BadName if it is neither."""
    if checkpoint is None and "/" in app:
        return True
    valid_name("app", app)
    return False


def _app_of(store: Store) -> str | None:
    """The name of the app that keeps its state in a store; None if none does."""
    try:
        return str(json.loads(store.get(APP_RECORD)).get("app"))
    except (OSError, ValueError):
        return None


def _tell_if_starting(place: str) -> None:
    directory = control_directory(place, otherwise="")
    here = None if "://" in place else Presence.read(directory)
    if here is not None and here.starting:
        raise StillStarting.of(here, directory)


def command(verb: str, app: str, checkpoint: str | None) -> str:
    """What to type for a verb about the same app."""
    return f"springtide {verb} {app}" + (f" --checkpoint {checkpoint}" if checkpoint else "")


def print_json(value: Any) -> None:
    """One line of JSON."""
    typer.echo(json.dumps(value))

"""Watches a migration until it has ended."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from springtide.cli.shared.app_target import print_json
from springtide.control.api.protocol import DONE, under_way
from springtide.present.numbers import number, size

POLL_S = 0.2
FAILED = 1
INTERRUPTED = 130

Json = Annotated[
    bool, typer.Option("--json", help="Print the migration, as it was seen last, as one JSON object and nothing else.")
]
Migration = dict[str, Any]


class Watched(Protocol):
    """Something that migrates."""

    def migration(self) -> Migration | None:
        """The current migration or else the last."""


def follow(
    watched: Watched,
    started: Migration,
    to_cancel: str,
    *,
    wait: bool,
    as_json: bool,
    terminal: Console | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Show a migration from its start to its end; exits with 1 unless it was done.

    Ctrl-C ends the watching, not the migration. `to_cancel` is what a person types to cancel it.
    """
    terminal = terminal or Console(quiet=as_json)
    if under_way(started):
        _say(terminal, f"migration {started['id']} ({started['strategy']}) has started; to cancel it: {to_cancel}")
    seen = started
    if wait:
        try:
            with _bar(terminal) as show:
                seen = _watch(watched, started, show, pause)
        except KeyboardInterrupt:
            # On stderr in any case: whoever reads the JSON gets none, as nothing has ended.
            _say(Console(stderr=True), f"stopped watching; the migration goes on. To cancel it: {to_cancel}")
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(seen)
    elif wait or not under_way(seen):
        _say(terminal, summary(seen))
    if seen["state"] != DONE and not under_way(seen):
        raise typer.Exit(FAILED)


def summary(migration: Migration) -> str:
    """A migration in a line."""
    text = (
        f"migration {migration['id']} {'is ' if under_way(migration) else ''}{migration['state']}: "
        f"{number(migration['done'])} of {number(migration['total'])} "
    )
    swapped = migration.get("unit") == "workers"
    text += "workers swapped" if swapped else f"slices moved, {size(migration['bytes'])} copied"
    return f"{text}; {migration['message']}" if migration.get("message") else text


def _watch(
    watched: Watched, started: Migration, show: Callable[[Migration], None], pause: Callable[[float], None]
) -> Migration:
    """The migration as it has ended; of one that another has followed already, that its end was missed."""
    seen = started
    show(seen)
    while under_way(seen):
        pause(POLL_S)
        now = watched.migration()
        if now is None or now["id"] != started["id"]:
            return {**seen, "state": "out of sight", "message": "it has ended, and its outcome is no longer known"}
        seen = now
        show(seen)
    return seen


@contextmanager
def _bar(terminal: Console) -> Iterator[Callable[[Migration], None]]:
    """A bar that moves, on a terminal; elsewhere nothing."""
    if not terminal.is_terminal or terminal.quiet:
        yield lambda migration: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[copied]}"), console=terminal) as progress:
        task = progress.add_task("starting", total=None, copied="")

        def show(migration: Migration) -> None:
            progress.update(
                task,
                description=str(migration["state"]),
                total=migration["total"] or None,
                completed=migration["done"],
                copied=size(migration["bytes"]),
            )

        yield show


def _say(terminal: Console, line: str) -> None:
    terminal.print(line, markup=False, highlight=False, soft_wrap=True)

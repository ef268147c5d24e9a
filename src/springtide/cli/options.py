"""Options that several verbs share."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

TRACEBACK = "springtide.traceback"
"""Where the choice is kept in the context, for whoever prints the error."""


def _remember_traceback(context: typer.Context, wanted: bool) -> bool:
    context.meta[TRACEBACK] = wanted
    return wanted


Traceback = Annotated[
    bool,
    typer.Option("--traceback", callback=_remember_traceback, help="Show the whole traceback of an error."),
]


def checked(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A callback that turns a ValueError of `parse` into a usage error with its message; None passes through."""

    def check(value: Any) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return check

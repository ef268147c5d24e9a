"""Options that several verbs share."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from springtide.logs import configure

TRACEBACK = "springtide.traceback"
"""Where the choice is kept in the context, for whoever prints the error."""


def _remember_traceback(context: typer.Context, wanted: bool) -> bool:
    context.meta[TRACEBACK] = wanted
    return wanted


Traceback = Annotated[
    bool,
    typer.Option("--traceback", callback=_remember_traceback, help="Show the whole traceback of an error."),
]


Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Log what Springtide does, on stderr."),
]


def with_verbose(verb: Callable[..., Any] | None) -> Callable[..., Any]:
    """The same verb with an option to log what it does."""
    assert verb is not None
    signature = inspect.signature(verb, eval_str=True)
    option = inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Verbose)

    @wraps(verb)
    def logged(*arguments: Any, verbose: bool = False, **options: Any) -> Any:
        configure("info" if verbose else None)
        return verb(*arguments, **options)

    logged.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option]
    )
    return logged


def checked(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A callback that turns a ValueError of `parse` into a usage error with its message; None passes through."""

    def check(value: Any) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return check

"""The base of every error that a person can act on."""

FAILED = 1
"""Exit code: what was asked for could not be done."""
MISUSED = 2
"""Exit code: what was asked for makes no sense; nothing was started."""


class SpringtideError(Exception):
    """An error whose message is all that a person needs: what was expected, what came, what to do.

    The command line prints the message alone and ends with `exit_code`. Any other exception is a bug in Springtide, or
    in a function of the user's own.
    """

    exit_code: int = FAILED


class BadValue(SpringtideError, ValueError):
    """An argument with a value that is out of the question."""

    exit_code = MISUSED


class BadType(SpringtideError, TypeError):
    """An argument of a type that is out of the question."""

    exit_code = MISUSED

"""The entry point of the console script: here before anything else is imported, so that no signal finds nobody."""

import os
import sys
import threading
import traceback
from types import TracebackType

from springtide.cli.shared.signals import Interrupted, raise_on_signals
from springtide.confidential import hide, remember_settings


def hide_in_tracebacks() -> None:
    """Tracebacks show no secrets: those of settings and connectors, and those of the environment."""
    remember_settings({name: value for name, value in os.environ.items() if not name.endswith(("FILE", "PATH", "DIR"))})

    def show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        print(hide("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)

    sys.excepthook = show
    threading.excepthook = lambda failed: show(failed.exc_type, failed.exc_value, failed.exc_traceback)


def main() -> None:
    """Run the command line; a signal ends it with one line and a shell's exit code."""
    try:
        raise_on_signals()
        hide_in_tracebacks()
        from springtide.cli.main import cli

        cli(prog_name="springtide")
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.stderr.flush()
        os._exit(error.exit_code)  # Threads that still talk to a JVM would only complain.

"""The entry point of the console script: here before anything else is imported, so that no signal finds nobody."""

import os
import sys

from springtide.cli.signals import Interrupted, raise_on_signals


def main() -> None:
    """Run the command line; a signal ends it with one line and a shell's exit code."""
    try:
        raise_on_signals()
        from springtide.cli.main import cli

        cli(prog_name="springtide")
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.stderr.flush()
        os._exit(error.exit_code)  # Threads that still talk to a JVM would only complain.

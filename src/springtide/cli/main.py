"""The console script: registers the verbs, and prints known errors as plain messages."""

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

import springtide
from springtide.cli.shared.app_target import WAYS_TO_MOVE, WAYS_TO_SCALE
from springtide.cli.shared.options import TRACEBACK, with_verbose
from springtide.cli.verbs.adapt import adapt
from springtide.cli.verbs.bench import app as bench
from springtide.cli.verbs.cancel import cancel_migration
from springtide.cli.verbs.demo import demo
from springtide.cli.verbs.doctor import doctor
from springtide.cli.verbs.explain import explain
from springtide.cli.verbs.fsck import fsck
from springtide.cli.verbs.history import history
from springtide.cli.verbs.kafka import app as kafka
from springtide.cli.verbs.migrations import migrations
from springtide.cli.verbs.move import move
from springtide.cli.verbs.plan import plan
from springtide.cli.verbs.queries import queries
from springtide.cli.verbs.run import run
from springtide.cli.verbs.scale import scale
from springtide.cli.verbs.simulate import simulate
from springtide.cli.verbs.status import status
from springtide.cli.verbs.workers import workers
from springtide.confidential import hide
from springtide.errors import FAILED, SpringtideError

INTERRUPTED = 130


class Verbs(TyperGroup):
    """Runs a verb; an error becomes a red message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _say(str(error) or "interrupted")
            raise typer.Exit(getattr(error, "exit_code", INTERRUPTED)) from None
        except (typer.Exit, typer.Abort, TyperException):
            raise
        except Exception as error:
            if ctx.meta.get(TRACEBACK) or _nobody_reads():
                raise
            message, code = plain(error)
            _say(message)
            raise typer.Exit(code) from error


def plain(error: Exception) -> tuple[str, int]:
    """What to tell a person of an error, and the exit code."""
    if isinstance(error, SpringtideError):
        return "\n".join([str(error), *getattr(error, "__notes__", [])]), error.exit_code
    # By name, as only the engine imports Spark. It has told its story on stderr, such as a master it does not know.
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return f"Spark failed: {first}\n--traceback shows where", FAILED
    if isinstance(error, OSError):
        return f"the system refused: {error}\n--traceback shows where", FAILED
    return f"a fault in Springtide: {type(error).__name__}: {error}\n--traceback shows where; please report it", FAILED


def _nobody_reads() -> bool:
    """Whether whoever read what we print has gone, as `head` does: that is no fault, and Typer ends quietly."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    return False


def _say(message: str) -> None:
    Console(stderr=True).print(hide(message), style="red", markup=False, highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"springtide {springtide.__version__}")
        raise typer.Exit


cli = typer.Typer(cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
cli.command()(demo)
cli.command()(run)
cli.command()(status)
cli.command()(workers)
cli.command()(plan)
cli.command(epilog=WAYS_TO_SCALE)(scale)
cli.command(epilog=WAYS_TO_MOVE)(move)
cli.command()(cancel_migration)
cli.command()(adapt)
cli.command()(history)
cli.command()(migrations)
cli.command()(explain)
cli.command()(queries)
cli.command()(fsck)
cli.command()(simulate)
cli.command()(doctor)
cli.add_typer(kafka, name="kafka")
cli.add_typer(bench, name="bench")
for group in (cli, bench):
    for verb in group.registered_commands:
        verb.callback = with_verbose(verb.callback)


@cli.callback()
def springtide_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Elastic stream processing on Apache Spark, in Python."""

"""The console script: registers the verbs, and prints known errors as plain messages."""

from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import springtide
from springtide.cli.adapt import adapt
from springtide.cli.bench import app as bench
from springtide.cli.cancel import cancel_migration
from springtide.cli.demo import demo
from springtide.cli.doctor import doctor
from springtide.cli.explain import explain
from springtide.cli.history import history
from springtide.cli.kafka import app as kafka
from springtide.cli.migrations import migrations
from springtide.cli.move import move
from springtide.cli.options import TRACEBACK
from springtide.cli.plan import plan
from springtide.cli.queries import queries
from springtide.cli.run import run
from springtide.cli.scale import scale
from springtide.cli.simulate import simulate
from springtide.cli.status import status
from springtide.cli.workers import workers
from springtide.errors import FAILED, SpringtideError

INTERRUPTED = 130


class Verbs(TyperGroup):
    """Runs a verb; a known error becomes a red message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            said = _plain(error)
            if said is None or ctx.meta.get(TRACEBACK):
                raise
            message, code = said
            _say(message)
            raise typer.Exit(code) from error


def _plain(error: Exception) -> tuple[str, int] | None:
    """What to tell a person, and the exit code; None if the error is a bug."""
    if isinstance(error, SpringtideError):
        return str(error), error.exit_code
    # By name, as only the engine imports Spark. It has told its story on stderr, such as a master it does not know.
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return f"Spark failed: {first}\n--traceback shows where", FAILED
    return None


def _say(message: str) -> None:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)


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
cli.command()(scale)
cli.command()(move)
cli.command()(cancel_migration)
cli.command()(adapt)
cli.command()(history)
cli.command()(migrations)
cli.command()(explain)
cli.command()(queries)
cli.command()(simulate)
cli.command()(doctor)
cli.add_typer(kafka, name="kafka")
cli.add_typer(bench, name="bench")


@cli.callback()
def springtide_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Elastic stream processing on Apache Spark, in Python."""


def main() -> None:
    """The entry point of the console script."""
    cli(prog_name="springtide")

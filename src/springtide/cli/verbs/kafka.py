"""`springtide kafka`: the jars that Kafka takes beside the package."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from springtide.cli.shared.options import Traceback
from springtide.connectors.kafka.fetch import USES, fetch
from springtide.connectors.kafka.jars import PLACE, Use, missing, pinned, place, present

app = typer.Typer(help="Fetch the jars that Kafka sources, sinks and brokers take.", no_args_is_help=True)


@app.command("fetch")
def fetch_(
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            show_default=False,
            help=f"Where they go; default the directory in {PLACE}, else .kafka in a checkout, else "
            "$XDG_DATA_HOME/springtide/kafka (~/.local/share/springtide/kafka).",
        ),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Fetch Spark's Kafka connector and a Kafka broker, some 55 MB, from Maven Central.

    Takes Java, and nothing else. Each jar is checked against a pinned SHA-256; what is there and whole is left alone.
    """
    directory = place() if to is None else to.expanduser().absolute()
    # On stderr, so that a pipe gets the outcome alone.
    fetched = sum(_fetch(use, directory, Console(stderr=True)) for use in USES)
    typer.echo(f"kafka: {fetched} jars fetched, {sum(len(pinned(use)) for use in USES)} in {directory}")
    if directory.resolve() != place().resolve():
        typer.echo(f"kafka: for apps to find them there: export {PLACE}={directory}")


def _fetch(use: Use, directory: Path, terminal: Console) -> int:
    """Fetch what is missing of one use, with a bar on a terminal and a line elsewhere; how many jars that was."""
    wanted = len(missing(use, directory))
    if not wanted:
        return 0
    if not terminal.is_terminal:
        terminal.print(f"kafka: fetching {wanted} jars of the {use}", soft_wrap=True, highlight=False)
    bar = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("jars"), TimeElapsedColumn()
    with Progress(*bar, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task(f"fetching the {use}", total=wanted)
        return fetch(use, directory, lambda come: progress.update(task, completed=come))


@app.command()
def jars(traceback: Traceback = False) -> None:
    """Print the connector's jars, with commas between: what `spark.jars` takes in a session of your own."""
    typer.echo(",".join(map(str, present("connector"))))

"""`springtide status`: what an app has done, read from its checkpoint alone."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from springtide.app import default_checkpoint
from springtide.blocks.record import PATH as APP_RECORD
from springtide.blocks.store import Store, open_store
from springtide.cli.figures import (
    late_rows,
    moment,
    number,
    rates,
    seconds,
    size,
    state_bytes,
    state_rows,
)
from springtide.cli.options import Traceback
from springtide.engine.reports import last_reports
from springtide.ids import NAME
from springtide.metrics.report import EpochReport, Phases


class NoCheckpoint(Exception):
    """No app has ever run on a checkpoint in any of these places."""

    def __init__(self, app: str, looked_at: tuple[str, ...]) -> None:
        super().__init__(app, looked_at)
        self.app, self.looked_at = app, looked_at

    def __str__(self) -> str:
        return (
            f"there is no checkpoint of {self.app!r}: looked at {' and '.join(self.looked_at)}. "
            "Give the app's name in the directory where it runs, or the path or URL that it got as --checkpoint"
        )


def find_checkpoint(app: str) -> Store:
    """The store of an app by its name, or by its path or URL."""
    places = [app]
    if NAME.fullmatch(app):
        places.insert(0, default_checkpoint(app))
    for place in places:
        store = open_store(place)
        if _holds_an_app(store):
            return store
    raise NoCheckpoint(app, tuple(p if "://" in p else str(Path(p).resolve()) for p in places))


def _holds_an_app(store: Store) -> bool:
    try:
        store.get(APP_RECORD)
    except OSError:
        return False
    return True


def status(
    app: Annotated[
        str, typer.Argument(metavar="APP", help="An app's name, or a checkpoint's path or URL.", show_default=False)
    ],
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many epochs.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show the last epochs of an app, running or not, and what its operators did in the last one."""
    store = find_checkpoint(app)
    # One more than is shown: the rate of the first is measured from the end of the one before it.
    reports = last_reports(store, last + 1)
    if as_json:
        for report in reports[-last:]:
            typer.echo(report.to_json())
        return
    terminal = Console()
    if not reports:
        terminal.print(f"no epoch yet in {store.url}", markup=False, highlight=False)
        return
    terminal.print(epochs_table(reports, last, store.url))
    terminal.print(operators_table(reports[-1]))


def epochs_table(reports: list[EpochReport], last: int, place: str) -> Table:
    """The last epochs; an epoch with an asterisk was published again after a restart."""
    table = Table(title=f"{reports[-1].app}, {place}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("epoch", justify="right", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    for name in ("rows in", "rows/s", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("phases", overflow="fold")
    for name in ("latency", "lag", "late", "dead letters", "state rows", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for report, per_s in list(zip(reports, rates(reports), strict=True))[-last:]:
        table.add_row(
            f"{report.epoch}{'*' if report.replayed else ''}",
            moment(report.ended_at),
            number(report.rows_in),
            number(per_s),
            seconds(report.phases.total_s),
            phases(report.phases),
            seconds(report.latency_s),
            number(report.lag_rows),
            number(late_rows(report)),
            number(report.dead_letters),
            number(state_rows(report)),
            size(state_bytes(report)),
        )
    return table


def phases(spent: Phases) -> str:
    """Where an epoch's time went; what took less than 5 ms is left out."""
    parts = {
        "plan": spent.plan_s,
        "compute": spent.compute_s,
        "commit": spent.commit_s,
        "publish": spent.publish_s,
        "collect": spent.collect_s,
    }
    return ", ".join(f"{name} {took_s:.2f}" for name, took_s in parts.items() if took_s >= 0.005) or "-"


def operators_table(report: EpochReport) -> Table:
    """What each operator did in an epoch, all its instances together."""
    table = Table(
        title=f"operators in epoch {report.epoch}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("step", overflow="fold")
    for name in ("instances", "rows in", "rows out", "useful", "idle", "cpu", "state rows", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for operator in report.operators:
        table.add_row(
            operator.step,
            number(len(operator.instances)),
            number(operator.rows_in),
            number(operator.rows_out),
            seconds(sum(i.useful_s for i in operator.instances)),
            seconds(sum(i.idle_s for i in operator.instances)),
            seconds(sum(i.cpu_s for i in operator.instances)),
            number(operator.state_rows),
            size(operator.state_bytes),
        )
    return table

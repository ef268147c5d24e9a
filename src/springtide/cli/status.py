"""`springtide status`: what an app has done, read from its checkpoint alone."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from springtide.app import default_checkpoint
from springtide.blocks.record import PATH as APP_RECORD
from springtide.blocks.store import Store, open_store
from springtide.cli.figures import decimal, moment, number, shown, size
from springtide.cli.options import Traceback
from springtide.cli.reach import print_json
from springtide.cli.tables import plain_table
from springtide.engine.reports import last_reports
from springtide.errors import SpringtideError
from springtide.ids import NAME
from springtide.metrics.catalogue import PHASES
from springtide.metrics.figures import figures
from springtide.metrics.report import EpochReport


class NoCheckpoint(SpringtideError):
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
    reports = last_reports(store, last)
    if as_json:
        for report in reports:
            print_json({**asdict(report), "figures": figures(report)})
        return
    terminal = Console()
    if not reports:
        terminal.print(f"no epoch yet in {store.url}", markup=False, highlight=False)
        return
    print_epochs(terminal, reports, f"{reports[-1].app}, {store.url}")
    terminal.print(operators_table(reports[-1]))
    if any(operator.hot_keys for operator in reports[-1].operators):
        terminal.print(hot_keys_table(reports[-1]))


Column = tuple[str, Callable[[EpochReport], str]]
"""A heading, and what is shown of an epoch under it."""


def _figure(heading: str, name: str) -> Column:
    return heading, partial(shown, name)


EPOCH: Column = ("epoch", lambda report: f"{report.epoch}{'*' if report.replayed else ''}")
FLOW: tuple[Column, ...] = (
    ("ended", lambda report: moment(report.ended_at)),
    _figure("rows in", "rows_in"),
    _figure("rows/s", "rows_per_s"),
    _figure("total s", "epoch_s"),
    _figure("latency s", "latency_s"),
    _figure("lag", "lag_rows"),
    _figure("late", "late_rows"),
    _figure("dead letters", "dead_letters"),
)
PHASES_AND_STATE = (
    *(_figure(f"{phase} s", f"{phase}_s") for phase in PHASES),
    _figure("state rows", "state_rows"),
    _figure("state size", "state_bytes"),
)


def print_epochs(terminal: Console, reports: list[EpochReport], title: str) -> None:
    """Epochs in one table, or in two if the terminal is narrow.

    One with an asterisk was true before: it was published again after a restart, or repeated.
    """
    whole = _table(title, (EPOCH, *FLOW, *PHASES_AND_STATE), reports)
    unlimited = terminal.options.update_width(1000)
    if terminal.measure(whole, options=unlimited).maximum <= terminal.width:
        terminal.print(whole)
        return
    terminal.print(_table(title, (EPOCH, *FLOW), reports))
    terminal.print(_table("phases and state", (EPOCH, *PHASES_AND_STATE), reports))


def operators_table(report: EpochReport) -> Table:
    """What each operator did in an epoch, all its instances together."""
    names = ["step", "instances", "rows in", "rows out", "useful s", "idle s", "cpu s", "state rows", "state size"]
    rows = [
        [
            operator.step,
            number(len(operator.instances)),
            number(operator.rows_in),
            number(operator.rows_out),
            decimal(sum(i.useful_s for i in operator.instances)),
            decimal(sum(i.idle_s for i in operator.instances)),
            decimal(sum(i.cpu_s for i in operator.instances)),
            number(operator.state_rows),
            size(operator.state_bytes),
        ]
        for operator in report.operators
    ]
    return plain_table(f"operators in epoch {report.epoch}", names, rows, left=("step",))


def hot_keys_table(report: EpochReport) -> Table:
    """The keys that had a good share of an epoch's rows."""
    rows = [
        [operator.step, str(hot.slice), hot.key, number(hot.rows), f"{hot.rows / max(1, operator.rows_in):.0%}"]
        for operator in report.operators
        for hot in operator.hot_keys
    ]
    names = ["step", "slice", "key", "rows", "share"]
    return plain_table(f"hot keys in epoch {report.epoch}, by a sample", names, rows, left=("step", "key"))


def _table(title: str, columns: Sequence[Column], reports: list[EpochReport]) -> Table:
    cells = [[of(report) for _, of in columns] for report in reports]
    return plain_table(title, [heading for heading, _ in columns], cells, left=("ended",))

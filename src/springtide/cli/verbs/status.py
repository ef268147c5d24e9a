"""`springtide status`: what an app has done, read from its checkpoint alone."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.catalogue import PHASES
from springtide.metrics.epoch_figures import figures
from springtide.metrics.report import EpochReport
from springtide.present.numbers import decimal, moment, number, shown, size
from springtide.present.tables import FittingTable, plain_table


def status(
    app: AppName,
    checkpoint: Checkpoint = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many epochs.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show the last epochs of an app, running or not, and what its operators did in the last one."""
    store = find_checkpoint(app, checkpoint)
    reports = last_reports(store, last)
    if as_json:
        for report in reports:
            print_json({**asdict(report), "figures": figures(report)})
        return
    terminal = Console()
    if not reports:
        terminal.print(f"no epoch yet in {store.url}", markup=False, highlight=False)
        return
    terminal.print(epochs_table(reports, f"{reports[-1].app}, {store.url}"))
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


def epochs_table(reports: list[EpochReport], title: str) -> FittingTable:
    """One epoch a line; one with an asterisk was true before: it was published again after a restart, or repeated."""
    columns = (EPOCH, *FLOW, *PHASES_AND_STATE)
    cells = [[of(report) for _, of in columns] for report in reports]
    return plain_table(title, [heading for heading, _ in columns], cells, left=("ended",))


def operators_table(report: EpochReport) -> FittingTable:
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


def hot_keys_table(report: EpochReport) -> FittingTable:
    """The keys that had a good share of an epoch's rows."""
    rows = [
        [operator.step, str(hot.slice), hot.key, number(hot.rows), f"{hot.rows / max(1, operator.rows_in):.0%}"]
        for operator in report.operators
        for hot in operator.hot_keys
    ]
    names = ["step", "slice", "key", "rows", "share"]
    return plain_table(f"hot keys in epoch {report.epoch}, by a sample", names, rows, left=("step", "key"))

"""`springtide status`: what an app has done, read from its checkpoint alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from springtide.cli.figures import (
    decimal,
    late_rows,
    moment,
    number,
    rates,
    size,
    state_bytes,
    state_rows,
)
from springtide.cli.options import Traceback
from springtide.cli.reach import AppName, Checkpoint, find_checkpoint
from springtide.cli.tables import FittingTable, plain_table
from springtide.engine.reports import last_reports
from springtide.metrics.report import EpochReport


def status(
    app: AppName,
    checkpoint: Checkpoint = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many epochs.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show the last epochs of an app, running or not, and what its operators did in the last one."""
    store = find_checkpoint(app, checkpoint)
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
    terminal.print(epochs_table(reports, last, f"{reports[-1].app}, {store.url}"))
    terminal.print(operators_table(reports[-1]))
    if any(operator.hot_keys for operator in reports[-1].operators):
        terminal.print(hot_keys_table(reports[-1]))


@dataclass(frozen=True)
class Column:
    """A figure of an epoch; `value` gets the report and its rows a second."""

    name: str
    value: Callable[[EpochReport, float], str]


EPOCH = Column("epoch", lambda r, _: f"{r.epoch}{'*' if r.replayed else ''}")
FLOW = (
    Column("ended", lambda r, _: moment(r.ended_at)),
    Column("rows in", lambda r, _: number(r.rows_in)),
    Column("rows/s", lambda _, per_s: number(per_s)),
    Column("total s", lambda r, _: decimal(r.phases.total_s)),
    Column("latency s", lambda r, _: decimal(r.latency_s)),
    Column("lag", lambda r, _: number(r.lag_rows)),
    Column("late", lambda r, _: number(late_rows(r))),
    Column("dead letters", lambda r, _: number(r.dead_letters)),
)
PHASES_AND_STATE = (
    Column("plan s", lambda r, _: decimal(r.phases.plan_s)),
    Column("compute s", lambda r, _: decimal(r.phases.compute_s)),
    Column("commit s", lambda r, _: decimal(r.phases.commit_s)),
    Column("publish s", lambda r, _: decimal(r.phases.publish_s)),
    Column("collect s", lambda r, _: decimal(r.phases.collect_s)),
    Column("state rows", lambda r, _: number(state_rows(r))),
    Column("state size", lambda r, _: size(state_bytes(r))),
)


def epochs_table(reports: list[EpochReport], last: int, title: str) -> FittingTable:
    """The last epochs; one with an asterisk was published again after a restart."""
    rows = list(zip(reports, rates(reports), strict=True))[-last:]
    columns = (EPOCH, *FLOW, *PHASES_AND_STATE)
    cells = [[column.value(report, per_s) for column in columns] for report, per_s in rows]
    return plain_table(title, [column.name for column in columns], cells, left=("ended",))


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

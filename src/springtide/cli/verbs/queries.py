"""`springtide queries`: what each query of an app is worth, what it got of late, and why."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from springtide.cli.shared.app_target import AppName, Checkpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.control.shed.log import ShedDecision, read_shed_log
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.report import EpochReport, QueryReport
from springtide.present.numbers import moment, number
from springtide.present.tables import FittingTable, plain_table


def queries(
    app: AppName,
    checkpoint: Checkpoint = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="Over how many epochs.")] = 20,
    decisions: Annotated[int, typer.Option(min=0, help="How many decisions to shed to tell, newest first.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a query, then one a decision.")] = False,
    traceback: Traceback = False,
) -> None:
    """Show what queries were offered, what was processed, shed or could not be read, and what was decided and why.

    The first three make up the fourth, for every query and epoch.
    """
    store = find_checkpoint(app, checkpoint)
    found = summed(last_reports(store, last))
    told = read_shed_log(store)[::-1][:decisions]
    if as_json:
        for line in [*(asdict(query) for query in found), *(asdict(shed) for shed in told)]:
            print_json(line)
        return
    terminal = Console()
    if not found:
        nothing = "no query of this app can do with less than all rows: with_minimum_accuracy(0.7) would let it"
        terminal.print(nothing, markup=False, highlight=False)
        return
    terminal.print(queries_table(app, found, last))
    for shed in told:
        terminal.print(_told(shed), markup=False, highlight=False)


def summed(reports: list[EpochReport]) -> list[QueryReport]:
    """By query: its epochs taken together, each once: the last report of an epoch that has an account."""
    found: dict[str, list[QueryReport]] = {}
    for report in {report.epoch: report for report in reports if report.queries}.values():
        for query in report.queries:
            found.setdefault(query.query, []).append(query)
    return [_sum(some) for some in found.values()]


def _sum(some: list[QueryReport]) -> QueryReport:
    def total(name: str) -> int:
        return sum(getattr(query, name) for query in some)

    good = sum(query.offered - query.dead_letters for query in some)
    weighed = sum(query.accuracy * (query.offered - query.dead_letters) for query in some)
    counts = {name: total(name) for name in ("offered", "processed", "shed", "dead_letters")}
    fixed: dict[str, Any] = {"priority": some[-1].priority, "minimum_accuracy": some[-1].minimum_accuracy}
    return QueryReport(some[-1].query, **counts, accuracy=weighed / good if good else 1.0, **fixed)


def queries_table(app: str, found: list[QueryReport], last: int) -> FittingTable:
    """One query a line, the most important first."""
    rows = [
        [
            query.query,
            str(query.priority),
            f"{100 * query.minimum_accuracy:.0f} %",
            f"{100 * query.accuracy:.1f} %",
            number(query.offered),
            number(query.processed),
            number(query.shed),
            number(query.dead_letters),
        ]
        for query in sorted(found, key=lambda query: (-query.priority, query.query))
    ]
    names = ["query", "priority", "minimum", "accuracy", "offered", "processed", "shed", "dead letters"]
    return plain_table(f"queries of {app}, over the last {last} epochs", names, rows, ("query",))


def _told(shed: ShedDecision) -> str:
    shares = ", ".join(f"{query} {100 * share:.0f} %" for query, share in shed.accuracy.items())
    reasons = "".join(f"\n    {reason}" for reason in shed.reasons)
    return f"{moment(shed.at)}: {shares}{reasons or ': there is room again'}"

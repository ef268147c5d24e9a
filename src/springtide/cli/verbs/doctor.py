"""`springtide doctor`: what this machine has and lacks for running apps."""

import json
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import springtide
from springtide.cli.shared.options import Traceback
from springtide.doctor.checks import checks, examine
from springtide.doctor.finding import Finding, State, ready
from springtide.errors import FAILED

STYLES = {State.OK: "green", State.WARNING: "yellow", State.MISSING: "yellow"}
PREVENTS = "bold red"


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Say what this machine has and lacks, each with what to do about it.

    Ends with 0 if all is there that every app needs, and with 1 if not; what only some apps take does not count.
    """
    terminal = Console()
    with terminal.status("looking around"):
        findings = examine(checks(springtide.__version__))
    if as_json:
        typer.echo(json.dumps({"ready": ready(findings), "findings": [finding.to_dict() for finding in findings]}))
    else:
        terminal.print(_table(findings))
        terminal.print(_verdict(findings), highlight=False)
    if not ready(findings):
        raise typer.Exit(FAILED)


def _table(findings: list[Finding]) -> Table:
    """A row a finding, with its remedy on lines of their own below what was found."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("state", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("found, and what to do", overflow="fold")
    for finding in findings:
        told = Text(finding.found)
        if finding.remedy:
            told.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, PREVENTS if finding.prevents else STYLES[finding.state]), finding.name, told)
    return table


def _verdict(findings: list[Finding]) -> Text:
    if stopping := [finding.name for finding in findings if finding.prevents]:
        return Text(f"Not ready: no app runs without {', '.join(stopping)}.", PREVENTS)
    optional = sum(finding.state is not State.OK for finding in findings)
    return Text(f"Ready: all that every app needs is here{f'; {optional} more to note above' if optional else ''}.")

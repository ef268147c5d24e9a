"""`springtide explain`: all about one decision."""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from springtide.cli.shared.app_target import AppName, Checkpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.cli.verbs.history import answer
from springtide.cli.verbs.migrations import seconds_of
from springtide.control.adapt.ledger import Record, read_ledger
from springtide.control.migration_log import Account, read_migrations
from springtide.errors import SpringtideError
from springtide.policies.decision import Hold, action
from springtide.policies.past import AppState
from springtide.present.numbers import decimal, moment, number, seconds
from springtide.present.tables import plain_table


class NoSuchEntry(SpringtideError):
    """The ledger has no decision of this number."""

    def __init__(self, app: str, wanted: int | None, last: int | None) -> None:
        super().__init__(app, wanted, last)
        self.app, self.wanted, self.last = app, wanted, last

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.app!r} has decided nothing by itself yet: start it with adapt, see springtide adapt --help"
        return f"{self.app!r} has no decision {self.wanted}: the last is {self.last}, springtide history lists them"


def explain(
    app: AppName,
    which: Annotated[int | None, typer.Argument(metavar="N", help="Its number; default the last change.")] = None,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Tell why an app decided as it did: what it saw, what was vetoed, what was done, and whether it helped."""
    store = find_checkpoint(app, checkpoint)
    record = find(app, read_ledger(store), which)
    account = migration_of(record, read_migrations(store))
    if as_json:
        print_json({**record.to_json(), "migration": None if account is None else account.to_json()})
        return
    terminal = Console()
    for line in story(record, account):
        terminal.print(line)


def find(app: str, records: list[Record], which: int | None) -> Record:
    """The decision of a number, or the last that changed something; NoSuchEntry if there is none."""
    if not records:
        raise NoSuchEntry(app, which, None)
    if which is None:
        return next((r for r in reversed(records) if not isinstance(r.entry.decision, Hold)), records[-1])
    for record in records:
        if record.entry.number == which:
            return record
    raise NoSuchEntry(app, which, records[-1].entry.number)


def migration_of(record: Record, accounts: list[Account]) -> Account | None:
    """The migration by which a decision was carried out: the one that ended when it did."""
    ended_at = record.entry.ended_at
    return next((a for a in accounts if ended_at is not None and a.course.ended_at == ended_at), None)


def story(record: Record, account: Account | None) -> list[object]:
    """Lines and tables, in the order of events."""
    entry = record.entry
    lines: list[object] = [
        Text(f"decision {entry.number} at {moment(entry.at)}, by {record.policy}", style="bold"),
        Text(f"wanted    {action(entry.wanted)}: {entry.wanted.reason}"),
        *(Text(f"vetoed    {veto}") for veto in entry.vetoes),
        Text(f"decided   {action(entry.decision)}: {entry.decision.reason}"),
    ]
    if record.phases:
        began = ", ".join(f"{phase} after {seconds(at)}" for phase, at in record.phases.items())
        lines.append(Text(f"enacted   {record.strategy}: {began}"))
    if account is not None:
        lines.append(Text(f"measured  {_measured(account)}"))
    if entry.outcome:
        lines.append(Text(f"outcome   {entry.outcome}, pause {seconds(entry.pause_s)}, helped: {answer(entry.helped)}"))
    if record.seen.get("operators"):
        lines += _seen(record)
    if entry.gauge is not None:
        lines.append(_before_and_after(entry.gauge, entry.after))
    return lines


def _measured(account: Account) -> str:
    """The measures of a migration that are known."""
    parts = [f"{name} {seconds(value)}" for name, value in seconds_of(account).items() if value is not None]
    return ", ".join([*parts, f"{number(account.measures.replayed_rows)} rows replayed"])


def _seen(record: Record) -> list[object]:
    seen = record.seen
    names = ["step", "instances", "rows/s", "true rate", "busy"]
    rows = [
        [name, number(o["instances"]), number(o["rows_per_s"]), number(o["true_rate"]), f"{o['busy']:.0%}"]
        for name, o in seen["operators"].items()
    ]
    title = f"seen in {seconds(seen['window_s'])} and {seen['epochs']} epochs"
    workers = [[worker, f"{w['cpu']:.0%}", number(w["queue_rows"])] for worker, w in seen.get("workers", {}).items()]
    return [
        plain_table(title, names, rows, left=("step",)),
        plain_table("", ["worker", "cpu", "queue"], workers, left=("worker",)),
    ]


def _before_and_after(before: AppState, after: AppState | None) -> object:
    def row(name: str, text: str, gauge: AppState | None, value: float | None) -> list[str]:
        return [name, text, decimal(value) if gauge is not None else "-"]

    rows = [
        row(name, decimal(float(getattr(before, field))), after, None if after is None else getattr(after, field))
        for name, field in (
            ("workers", "workers"),
            ("rows/s", "throughput"),
            ("arriving rows/s", "arriving"),
            ("lag s", "lag_s"),
            ("imbalance", "imbalance"),
            ("bytes between workers", "crossing"),
        )
    ]
    return plain_table("before and after", ["", "before", "after"], rows, left=("",))

"""`springtide fsck`: whether a checkpoint holds all that its app needs, byte by byte."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.text import Text

from springtide import codec
from springtide.app import default_checkpoint
from springtide.blocks.finding import Examination, Finding
from springtide.blocks.fsck import Fsck
from springtide.blocks.generation import current
from springtide.blocks.log import DIRECTORY as MANIFESTS
from springtide.blocks.store import Store, open_store
from springtide.cli.shared.app_target import AppName, Checkpoint, NoCheckpoint, find_checkpoint, print_json
from springtide.cli.shared.options import Traceback
from springtide.control import migration_log
from springtide.control.adapt import ledger
from springtide.control.shed import log as shed_log
from springtide.control.shed.log import ShedDecision
from springtide.engine.lifecycle import report_log
from springtide.errors import FAILED
from springtide.metrics.report import EpochReport
from springtide.present.numbers import NONE, number, size
from springtide.present.tables import FittingTable, plain_table

LOGS: dict[str, Callable[[str], object]] = {
    report_log.DIRECTORY: partial(codec.loads, EpochReport),
    ledger.DIRECTORY: lambda line: ledger.Record.from_json(json.loads(line)),
    migration_log.DIRECTORY: lambda line: migration_log.Account.from_json(json.loads(line)),
    shed_log.DIRECTORY: partial(codec.loads, ShedDecision),
}
"""By directory: what reads a line."""


def fsck(
    app: AppName,
    checkpoint: Checkpoint = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    traceback: Traceback = False,
) -> None:
    """Read all of a checkpoint, and say what is damaged, what that means for its app, and what to do.

    Ends with 0 if it is sound and with 1 if not. Changes nothing, and works beside a running app.
    """
    store, terminal = _store(app, checkpoint), Console()
    waiting: AbstractContextManager[Status | None] = nullcontext() if as_json else terminal.status("reading manifests")
    with waiting as status:

        def progress(done: int, of: int, size_bytes: int) -> None:
            if status is not None:
                status.update(f"block {number(done)} of {number(of)}, {size(size_bytes)} read")

        found = Fsck(store, LOGS, progress)()
    if as_json:
        print_json(found.to_json())
    else:
        terminal.print(parts_table(found))
        for finding in found.findings:
            terminal.print(_told(finding))
        terminal.print(_verdict(found))
    if not found.sound:
        raise typer.Exit(FAILED)


def _store(app: str, checkpoint: str | None) -> Store:
    """The store of an app, also if the record by which others find it is gone."""
    try:
        return find_checkpoint(app, checkpoint)
    except NoCheckpoint:
        store = open_store(checkpoint or (app if "/" in app else default_checkpoint(app)))
        if current(store).list(MANIFESTS):
            return store
        raise


def parts_table(found: Examination) -> FittingTable:
    """One kind of thing a line."""
    rows = [
        [part.name, number(part.files), size(part.size_bytes) if part.files else NONE, number(part.damaged)]
        for part in found.parts
        if part.files or part.findings
    ]
    return plain_table(found.url, ["part", "files", "size", "damaged"], rows, left=("part",))


def _told(finding: Finding) -> Padding:
    text = Text(f"{finding.where}: ", "yellow" if finding.harmless else "bold red")
    text.append(finding.what, "default")
    text.append(f"\n{finding.means}", "default")
    text.append(f"\n-> {finding.remedy}", "bold")
    return Padding(text, (0, 0, 1, 0))


def _verdict(found: Examination) -> Text:
    app = "the app" if found.app is None else found.app
    at = "has no epoch yet" if found.head is None else f"can go on after epoch {found.head}"
    damaged = sum(not finding.harmless for finding in found.findings)
    if damaged:
        return Text(f"Damaged: {number(damaged)} finding{'' if damaged == 1 else 's'} above.", "bold red")
    return Text(f"Sound: {app} {at}.")

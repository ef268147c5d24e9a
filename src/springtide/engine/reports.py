"""The epoch reports of an app: a JSON-lines log in its checkpoint."""

import json

from springtide.blocks.store import Store
from springtide.metrics.report import EpochReport

DIRECTORY = "reports"
CHUNK = 64
"""Reports in one file; the last file is rewritten with each report, as object stores can't append."""


class ReportLog:
    """Appends reports; each file is named by its first epoch."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lines: list[str] = []
        self._first = 0

    def append(self, report: EpochReport) -> None:
        if not self._lines or len(self._lines) >= CHUNK:
            self._lines, self._first = self._begun(report.epoch), report.epoch
        self._lines.append(report.to_json())
        data = "".join(f"{line}\n" for line in self._lines).encode()
        self.store.put(f"{DIRECTORY}/{self._first:09d}.jsonl", data)

    def _begun(self, epoch: int) -> list[str]:
        """The lines of a file that an earlier driver began with the same epoch: they stay."""
        try:
            return self.store.get(f"{DIRECTORY}/{epoch:09d}.jsonl").decode().splitlines()
        except FileNotFoundError:
            return []


def last_told(store: Store) -> int:
    """The last epoch that any report tells of; -1 if there is none.

    After going back, files overlap: each that begins less than a file's length before the last one is looked at.
    """
    begins = {int(name.partition(".")[0]): name for name in store.list(DIRECTORY) if name.partition(".")[0].isdigit()}
    near = [name for begin, name in begins.items() if begin > max(begins) - CHUNK]
    lines = (line for name in near for line in store.get(f"{DIRECTORY}/{name}").decode(errors="replace").splitlines())
    return max((epoch for epoch in map(_epoch, lines) if epoch is not None), default=-1)


def _epoch(line: str) -> int | None:
    """The epoch that a line tells of; None if the line is cut short: an app starts all the same."""
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, KeyError, TypeError):
        return None


def last_reports(store: Store, count: int) -> list[EpochReport]:
    """The last reports of an app, oldest first."""
    lines: list[str] = []
    for name in reversed(store.list(DIRECTORY)):
        lines = store.get(f"{DIRECTORY}/{name}").decode().splitlines() + lines
        if len(lines) >= count:
            break
    return [EpochReport.from_json(line) for line in lines[-count:]]

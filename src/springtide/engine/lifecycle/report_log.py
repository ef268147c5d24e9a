"""The epoch reports of an app: a JSON-lines log in its checkpoint."""

import json

from springtide import codec
from springtide.blocks.rotation import rotate
from springtide.blocks.store import Store
from springtide.metrics.report import EpochReport

DIRECTORY = "reports"
CHUNK = 64
"""Reports in one file; the last file is rewritten with each report, as object stores can't append."""
KEEP_REPORTS = 256
"""Reports in memory: enough for every window that is looked back on. One of 15 keyed steps takes 200 kB."""
AS_MANY = 4
"""The checkpoint keeps 4 times as many reports as memory does; fewer if the app is often started, as each start begins
a file, and files are counted."""


class ReportLog:
    """Appends reports; each file is named by its first epoch and its driver. The oldest go when there are too many."""

    def __init__(self, store: Store, keep: int = KEEP_REPORTS, generation: int = 0) -> None:
        """The last `keep` reports are in memory."""
        self.store, self.generation = store, generation
        self._files = 1 + -(-AS_MANY * keep // CHUNK)
        self._lines: list[str] = []
        self._first = 0

    def append(self, report: EpochReport) -> None:
        if not self._lines or len(self._lines) >= CHUNK:
            self._lines, self._first = self._begun(report.epoch), report.epoch
            rotate(self.store, DIRECTORY, self._files - 1)
        self._lines.append(codec.dumps(report))
        data = "".join(f"{line}\n" for line in self._lines).encode()
        self.store.put(self._path(self._first), data)

    def _begun(self, epoch: int) -> list[str]:
        """The lines of a file that began with the same epoch before the app went back: they stay."""
        try:
            return self.store.get(self._path(epoch)).decode().splitlines()
        except FileNotFoundError:
            return []

    def _path(self, first: int) -> str:
        return f"{DIRECTORY}/{first:09d}.{self.generation:09d}.jsonl"


def last_told(store: Store) -> int:
    """The last epoch that any report tells of; -1 if there is none.

    After going back, files overlap: each that begins less than a file's length before the last one is looked at.
    """
    begins = [(int(name.partition(".")[0]), name) for name in store.list(DIRECTORY) if name[:1].isdigit()]
    near = [name for begin, name in begins if begin > max(begins)[0] - CHUNK]
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
    return [codec.loads(EpochReport, line) for line in lines[-count:]]

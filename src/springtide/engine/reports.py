"""The epoch reports of an app: a JSON-lines log in its checkpoint."""

from springtide.blocks.rotation import rotate
from springtide.blocks.store import Store
from springtide.metrics.report import EpochReport

DIRECTORY = "reports"
CHUNK = 64
"""Reports in one file; the last file is rewritten with each report, as object stores can't append."""
KEEP_REPORTS = 256
"""Reports in memory: enough for every window that is looked back on. One of 15 keyed steps takes 200 kB."""
AS_MANY = 4
"""Times the reports that are kept in memory: so many are kept here. Fewer, if each start of an app begins a file."""


class ReportLog:
    """Appends reports; each file is named by its first epoch. The oldest go when there are too many."""

    def __init__(self, store: Store, keep: int = KEEP_REPORTS) -> None:
        """The last `keep` reports are in memory."""
        self.store = store
        self._files = 1 + -(-AS_MANY * keep // CHUNK)
        self._lines: list[str] = []
        self._first = 0

    def append(self, report: EpochReport) -> None:
        if not self._lines or len(self._lines) >= CHUNK:
            self._lines, self._first = [], report.epoch
            rotate(self.store, DIRECTORY, self._files - 1)
        self._lines.append(report.to_json())
        data = "".join(f"{line}\n" for line in self._lines).encode()
        self.store.put(f"{DIRECTORY}/{self._first:09d}.jsonl", data)


def last_reports(store: Store, count: int) -> list[EpochReport]:
    """The last reports of an app, oldest first."""
    lines: list[str] = []
    for name in reversed(store.list(DIRECTORY)):
        lines = store.get(f"{DIRECTORY}/{name}").decode().splitlines() + lines
        if len(lines) >= count:
            break
    return [EpochReport.from_json(line) for line in lines[-count:]]

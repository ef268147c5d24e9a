"""Lives of the driver that has too much to do, and what it has published."""

import json
from collections.abc import Sequence
from pathlib import Path

import driver_life
import overload_app
import pyarrow.parquet as pq

from springtide.blocks.manifest import Manifest
from springtide.metrics.report import EpochReport


class Life(driver_life.Life):
    """One life of the driver; the next one on the same root goes on where it was."""

    def __init__(
        self, root: Path, rates: Sequence[tuple[float, float]], sheds: bool, row_s: float, epoch_rows: int
    ) -> None:
        given = [f"--rates={json.dumps(rates)}", f"--row-s={row_s}", f"--epoch-rows={epoch_rows}"]
        super().__init__(root, overload_app, [*given, *(["--sheds"] if sheds else [])])

    def source_s(self) -> float:
        """Seconds of the source's time since its profile began, when the last epoch ended."""
        found = self.last()
        return source_s(self.root, found) if found is not None and first(self.root) else 0.0

    def drained(self, rows: float) -> bool:
        """Whether fewer rows wait."""
        found = self.last()
        return found is not None and found.lag_rows is not None and found.lag_rows < rows

    def accurate(self) -> bool:
        """Whether every query has all rows."""
        found = self.last()
        return found is not None and all(query.accuracy == 1 for query in found.queries)


def source_s(root: Path, report: EpochReport) -> float:
    """When an epoch ended, in seconds since the source's profile began."""
    began: int = json.loads(Manifest.decode(first(root)[0].read_bytes()).offsets[0])["start_us"]
    return report.ended_at - began / 1e6


def first(root: Path) -> list[Path]:
    """The manifest of the first epoch; a moment later than its report."""
    return list((root / "kept").glob(f"{0:09d}.*.json"))


def counted(root: Path, query: str) -> int:
    """The rows that a query's results tell of: by key, the last count that was published."""
    last: dict[int, int] = {}
    files = (root / query).glob("epoch=*/*.parquet")
    for file in sorted(files, key=lambda file: int(file.parent.name[len("epoch=") :])):
        for row in pq.ParquetFile(file).read().to_pylist():
            last[row["key"]] = row["n"]
    return sum(last.values())

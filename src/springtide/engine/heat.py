"""Heat: how many rows each slice has had lately."""

from collections import defaultdict
from collections.abc import Iterable

from springtide.ids import SliceId
from springtide.metrics.report import OperatorReport
from springtide.plan.moves import Heat

FADING = 0.8
"""What an epoch leaves of the heat before it."""


class Thermometer:
    """A fading mean of the rows that reached each slice."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, SliceId], float] = {}

    def observe(self, reports: Iterable[OperatorReport]) -> None:
        """Take an epoch in."""
        fresh: dict[tuple[str, SliceId], float] = defaultdict(float)
        for report in reports:
            for instance in report.instances:
                for slice_id, rows in instance.slice_rows:
                    fresh[report.step, SliceId(slice_id)] += rows
        for key in self._rows.keys() | fresh.keys():
            before = self._rows.get(key, fresh[key])
            self._rows[key] = FADING * before + (1 - FADING) * fresh[key]

    def read(self) -> Heat:
        """The heat now; a slice that never had a row is not in it."""
        return dict(self._rows)

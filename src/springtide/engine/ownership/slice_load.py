"""Heat: how many rows each slice has had lately."""

from collections import defaultdict
from collections.abc import Sequence

from springtide.ids import SliceId
from springtide.metrics.report import EpochReport
from springtide.plan.moves import SliceLoad

LATELY = 20
"""Epochs that are looked back on."""


def slice_load(reports: Sequence[EpochReport]) -> SliceLoad:
    """Rows an epoch, on average, of each slice that had some lately."""
    recent = reports[-LATELY:]
    rows: dict[tuple[str, SliceId], float] = defaultdict(float)
    for report in recent:
        for operator in report.operators:
            for instance in operator.instances:
                for number, count in instance.slice_rows:
                    rows[operator.step, SliceId(number)] += count / len(recent)
    return dict(rows)

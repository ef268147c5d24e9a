"""Figures of epochs, and how they are written for people."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median

from springtide.metrics.report import EpochReport

NONE = "-"


def rates(reports: Sequence[EpochReport]) -> list[float]:
    """Rows a second of each epoch, by the time since the epoch before it ended.

    The first one, and one that does not follow its predecessor, is measured by its own time.
    """
    found = []
    for i, report in enumerate(reports):
        before = reports[i - 1] if i else None
        follows = before is not None and before.epoch + 1 == report.epoch
        took_s = report.ended_at - before.ended_at if follows and before else report.phases.total_s
        found.append(report.rows_in / took_s if took_s > 0 else 0.0)
    return found


def rate(reports: Sequence[EpochReport]) -> float | None:
    """Rows a second from the end of the first of these epochs to the end of the last; None if it is the only one."""
    if len(reports) < 2:
        return None
    took_s = reports[-1].ended_at - reports[0].ended_at
    return sum(r.rows_in for r in reports[1:]) / took_s if took_s > 0 else None


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the values that are known."""
    known = [v for v in values if v is not None]
    return median(known) if known else None


def state_rows(report: EpochReport) -> int:
    """Keys that all operators together remember."""
    return sum(o.state_rows for o in report.operators)


def state_bytes(report: EpochReport) -> int:
    """What their state takes in the store."""
    return sum(o.state_bytes for o in report.operators)


def late_rows(report: EpochReport) -> int:
    """Rows that came after their window had closed."""
    return sum(o.late_rows for o in report.operators)


def number(value: float | None) -> str:
    """A count or a rate: 1,234,567."""
    return NONE if value is None else f"{value:,.0f}"


def in_short(value: float) -> str:
    """A large count: 950, 12.3 k, 4.56 M, 18.1 T."""
    for unit in ("", " k", " M", " G"):
        if abs(value) < 1000:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:,.1f} T"


def decimal(value: float | None) -> str:
    """Seconds without their unit: 0.07, 1.25, 312."""
    if value is None:
        return NONE
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """A span of time: 0.07 s, 1.25 s, 312 s."""
    return NONE if value is None else f"{decimal(value)} s"


def size(value: float) -> str:
    """A size: 512 B, 3.1 kB, 40.0 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def moment(at: float) -> str:
    """A time of day, with the date unless it is today's."""
    when = datetime.fromtimestamp(at)
    return f"{when:%H:%M:%S}" if when.date() == datetime.now().date() else f"{when:%Y-%m-%d %H:%M:%S}"


def accuracy(report: EpochReport) -> str:
    """The least accurate of an epoch's queries, in percent; nothing if none could be anything but exact."""
    least = min((query.accuracy for query in report.queries), default=None)
    return "" if least is None else f"{100 * least:.0f} %"

"""How figures are written for people."""

from collections.abc import Iterable
from datetime import datetime
from statistics import median

from springtide.metrics.epoch_figures import BYTES, FIGURE, SECONDS, SHARE, figure
from springtide.metrics.report import EpochReport

NONE = "-"


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the values that are known."""
    known = [v for v in values if v is not None]
    return median(known) if known else None


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


def size(value: float | None) -> str:
    """A size: 512 B, 3.1 kB, 40.0 MB."""
    if value is None:
        return NONE
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def moment(at: float) -> str:
    """A time of day, with the date unless it is today's."""
    when = datetime.fromtimestamp(at)
    return f"{when:%H:%M:%S}" if when.date() == datetime.now().date() else f"{when:%Y-%m-%d %H:%M:%S}"


def percent(value: float | None) -> str:
    """A share: 97 %."""
    return NONE if value is None else f"{100 * value:.0f} %"


def shown(name: str, report: EpochReport) -> str:
    """A figure of an epoch as cells show it: seconds are without their unit."""
    value, unit = figure(name, report), FIGURE[name].unit
    return {SECONDS: decimal, BYTES: size, SHARE: percent}.get(unit, number)(value)


def again(report: EpochReport) -> str | None:
    """What was done with an epoch that was true before; None if it was not."""
    if not report.replayed:
        return None
    return "published again" if report.published_again else "repeated"

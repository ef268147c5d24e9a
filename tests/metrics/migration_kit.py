"""Epoch reports and courses of migrations, in short."""

from springtide.metrics.migration.course import Course
from springtide.metrics.migration.steadiness import Steadiness
from springtide.metrics.report import EpochReport, Phases

NOW = 1_790_000_000.0
SHORT = Steadiness(window_s=8.0, smooth_s=2.0, calm_s=30.0)


def report(
    epoch: int, end: float, rows: int = 10, *, took: float = 1.0, out: int | None = None, **more: object
) -> EpochReport:
    out = rows if out is None else out
    fields = {"replayed": False, "retries": 0, **more}
    replayed, retries = bool(fields["replayed"]), int(fields["retries"])  # type: ignore[call-overload]
    phases = Phases(compute_s=took)
    return EpochReport("app", epoch, NOW + end, 1, replayed, rows, out, None, None, 0, phases, (), retries)


def every_second(first: int, last: int, **more: object) -> list[EpochReport]:
    """Epoch n ends at n seconds."""
    return [report(n, float(n), **more) for n in range(first, last + 1)]  # type: ignore[arg-type]


def course(strategy: str, asked: float, ended: float | None = None, last: int | None = None, **phases: float) -> Course:
    ended_at = None if ended is None else NOW + ended
    return Course(strategy, NOW + asked, ended_at, {name: NOW + at for name, at in phases.items()}, last)


# Scripts: what each strategy looks like, second by second.

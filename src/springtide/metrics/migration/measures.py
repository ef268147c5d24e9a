"""The measures of a migration: how long the app was disturbed, in what way, and what it had to do again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from springtide.metrics.migration.course import RESTART, Course, rows_given
from springtide.metrics.migration.repeats import Repeats
from springtide.metrics.migration.steadiness import Steadiness, steady_from
from springtide.metrics.report import EpochReport

USUAL = Steadiness()


@dataclass(frozen=True)
class MigrationMeasures:
    """Seconds count from the request if nothing else is said; None is not applicable, or not known (yet)."""

    restore_s: float | None
    """Until results flow again. Live strategies never stop: the longest time without any, until the first after it."""
    drain_s: float | None
    """How long the app was brought to a stand: what was under way finished or captured, state stored. 0 for
    `restart`, which ends it at once, and for live strategies."""
    rebalance_s: float | None
    """How long the workers were swapped; for live strategies, the whole migration."""
    catchup_s: float | None
    """Until all rows were out that had entered before; not for `drain`, which has none left by then."""
    recovery_s: float | None
    """Until the last epoch that was done again was out; for `restart` only."""
    stabilise_s: float | None
    """Until the output rate became as it was, to stay so for a while; not before results flow again."""
    replayed_rows: int
    """Rows processed again."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, to the millisecond."""
        return {name: None if value is None else round(value, 3) for name, value in vars(self).items()}


def measure(
    course: Course,
    reports: Iterable[EpochReport],
    steadiness: Steadiness = USUAL,
    *,
    retries_count: bool = True,
    repeats_are_output: bool = False,
) -> MigrationMeasures:
    """Measure a migration by the epochs before, during and after it, in any order.

    With `retries_count`, rows of an epoch near it that was run anew were processed again because of it. Repeated
    epochs are no output, as their rows do not go to sinks again; with `repeats_are_output` they are.
    """
    repeats = Repeats.of(course, reports, retries_count=retries_count)
    lumps = [
        (r.ended_at - course.asked_at, rows_given(r, repeats=repeats_are_output))
        for r in (*repeats.before, *repeats.after)
    ]
    ended = _since(course, course.ended_at)
    restore_s = _restore_s(course, [at for at, rows in lumps if at > 0 and rows > 0])
    steady_s = None if ended is None else steady_from(lumps, steadiness, ended)
    if steady_s is not None and course.resumed_at is not None:
        # What comes at once, after a while without anything, may make up for that on average.
        steady_s = None if restore_s is None else max(steady_s, restore_s)
    return MigrationMeasures(
        restore_s=restore_s,
        drain_s=0.0 if not course.stops or course.strategy == RESTART else course.lasted_s("prepare", "swap"),
        rebalance_s=course.lasted_s("swap", "init") if course.stops else _whole_s(course),
        catchup_s=_since(course, repeats.caught_up_at()),
        recovery_s=_since(course, repeats.recovered_at()),
        stabilise_s=steady_s,
        replayed_rows=repeats.rows(),
    )


def _restore_s(course: Course, outputs: Sequence[float]) -> float | None:
    """Outputs are seconds since the request, in order. One that was given up before a swap is measured as if live."""
    resumed, ended = _since(course, course.resumed_at), _since(course, course.ended_at)
    if resumed is not None:
        return next((at for at in outputs if at > resumed), None)
    if ended is None:
        return None
    first_after = next((number for number, at in enumerate(outputs) if at > ended), None)
    if first_after is None:
        return None
    return max(late - early for early, late in pairwise((0.0, *outputs[: first_after + 1])))


def _whole_s(course: Course) -> float | None:
    began = course.phases.get("starting", course.asked_at)
    return None if course.ended_at is None else max(0.0, course.ended_at - began)


def _since(course: Course, at: float | None) -> float | None:
    return None if at is None else at - course.asked_at

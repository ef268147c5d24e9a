"""What a migration made the app do again, and when rows that had entered before it were out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from springtide.metrics.migration.course import DRAIN, RESTART, Course, began_at
from springtide.metrics.report import EpochReport


@dataclass(frozen=True)
class Repeats:
    """The epochs around a migration, as far as they tell of rows that were under way or processed again."""

    course: Course
    before: Sequence[EpochReport]
    """Ended up to the request."""
    after: Sequence[EpochReport]
    retries_count: bool = True
    """Whether an epoch that was run anew counts. Its report does not say why it was: near a migration most likely
    because of it, yet a worker may have been lost at the same time."""

    @classmethod
    def of(cls, course: Course, reports: Iterable[EpochReport], *, retries_count: bool = True) -> "Repeats":
        return cls(course, *course.split(reports), retries_count)

    def affected(self) -> list[EpochReport]:
        """From the request to the first epoch after the migration's end that is no repeat.

        What is repeated later has another cause, such as a lost worker.
        """
        return self._affected()[0]

    def _affected(self) -> tuple[list[EpochReport], bool]:
        """Also: whether that epoch has come."""
        found, ended_at = [], self.course.ended_at
        for report in self.after:
            found.append(report)
            if ended_at is not None and report.ended_at > ended_at and not report.replayed:
                return found, True
        return found, False

    def rows(self) -> int:
        """Rows processed again, as far as the reports reach; whole epochs, however far an attempt had come."""
        return sum(report.rows_in * self._times(report) for report in self.affected())

    def _times(self, report: EpochReport) -> int:
        """How often an epoch was done again: because it was true before, and for each attempt thrown away."""
        thrown_away = report.retries if self.retries_count else 0
        return int(report.replayed) + max(thrown_away, int(self._interrupted(report)))

    def _interrupted(self, report: EpochReport) -> bool:
        """Whether the first attempt was ended at once by the migration.

        A query that starts anew knows nothing of that attempt: it shows only in that the epoch had begun before.
        """
        course = self.course
        return (
            course.strategy == RESTART
            and report.epoch == course.last_begun
            and not report.replayed
            and course.resumed_at is not None
            and report.ended_at > course.resumed_at
        )

    def last_begun(self) -> int | None:
        """The last epoch that had begun before the request; None if there was none.

        Where nobody took note, it is worked out: epochs come one after the other, so it is the last that had ended,
        or the next if that one had begun. Where the app stopped, the next one's report may be that of a second
        attempt and not tell; then it is taken to have begun, which makes nothing look better than it was.
        """
        course = self.course
        if course.last_begun is not None:
            return course.last_begun
        begun = [r.epoch for r in self.before]
        coming = min((r for r in self.after if not r.replayed), key=lambda r: r.epoch, default=None)
        if coming is not None and (course.stops or began_at(coming) <= course.asked_at):
            begun.append(coming.epoch)
        return max(begun, default=None)

    def caught_up_at(self) -> float | None:
        """When all rows that had entered before the request were out, those of repeated epochs once more.

        None if that is not known yet; or, as everything is out before its workers are swapped, for `drain`.
        """
        course, last = self.course, self.last_begun()
        if course.strategy == DRAIN or not self._going_on():
            return None
        repeated = [r for r in self.affected() if r.replayed] if course.stops else []
        if last is None or (not repeated and any(r.epoch >= last for r in self.before)):
            return course.asked_at
        since = repeated[0].ended_at if repeated else course.asked_at
        return min((r.ended_at for r in self.after if r.epoch >= last and r.ended_at >= since), default=None)

    def _going_on(self) -> bool:
        """Whether the reports reach into the time after the app stood still, and past what it had to repeat."""
        course = self.course
        since = course.asked_at
        if course.stops:
            over = course.ended_at if course.resumed_at is None else course.resumed_at
            if over is None:
                return False
            since = max(since, over)
        told = course.last_begun is not None
        return any(r.ended_at > since and (told or not r.replayed) for r in self.after)

    def recovered_at(self) -> float | None:
        """When the last epoch that was done again was out, for `restart`; None for others, or if more may come."""
        found, over = self._affected()
        if self.course.strategy != RESTART or not over:
            return None
        return max((r.ended_at for r in found if self._times(r)), default=self.course.asked_at)

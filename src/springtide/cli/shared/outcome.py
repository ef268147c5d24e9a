"""What a run came to, counted epoch by epoch: an app may run for weeks, and its reports are not all kept."""

from collections import Counter
from collections.abc import Iterable

from springtide.metrics.report import EpochReport
from springtide.metrics.totals import Totals
from springtide.present.numbers import again, number


class Outcome:
    """Told of every epoch of a run; as a string, how the sentence about its end goes on."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._again: Counter[str] = Counter()
        """By what was done with them: epochs of earlier runs."""

    @classmethod
    def of(cls, reports: Iterable[EpochReport]) -> "Outcome":
        """What these epochs come to."""
        found = cls()
        for report in reports:
            found.epoch(report)
        return found

    def epoch(self, report: EpochReport) -> None:
        """One epoch more."""
        self._totals = self._totals.after(report)
        if (what := again(report)) is not None:
            self._again[what] += 1

    def __str__(self) -> str:
        new = self._totals.count("epochs_total")
        done_again = [
            f"{_epochs(count)} {'was' if count == 1 else 'were'} {what}" for what, count in self._again.items()
        ]
        if done_again and not new:
            return f": {' and '.join(done_again)}, and there was nothing new"
        return "; ".join([f" after {_epochs(new)} and {number(self._totals.count('rows_total'))} rows", *done_again])


def _epochs(count: float) -> str:
    return f"{number(count)} epoch{'' if count == 1 else 's'}"

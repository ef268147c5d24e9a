"""What the controller promises under overload, held against a run: how soon it acts, how far an app falls behind."""

from dataclasses import dataclass
from itertools import pairwise

from springtide.bench.experiments.shed.figures import CYCLE_S, sheds
from springtide.bench.experiments.shed.overload import Overloaded


@dataclass(frozen=True)
class Acted:
    """How soon a step of the load was answered."""

    acted_s: float
    """From the step to the start of the first epoch that sheds."""
    bar_s: float
    """One cycle, and the epoch that was under way when the decision fell: the one before."""


def acted(track: Overloaded) -> Acted | None:
    """How soon drives were shed after the rate began to rise; None if none were."""
    epochs = zip(track.starts_s, track.reports, strict=True)
    for (_, before), (start, report) in pairwise(epochs):
        if start >= track.began_s and sheds(report):
            return Acted(start - track.began_s, CYCLE_S + before.phases.total_s)
    return None


@dataclass(frozen=True)
class Growth:
    """The rows that wait at the end of the peak more than at the beginning of what was foretold."""

    lag_rows: float
    foretold_rows: float


def growth(track: Overloaded) -> Growth | None:
    """By how much the lag grew in the peak, and by how much it would by the controller's own account.

    From the first decision in the peak that says that drives are missing; None if there is none, or if that is said
    for less than half of the peak: the minima do fit then, but for a moment.
    """
    reached, until = track.peak_s
    told = [(decision.at, decision.missing) for decision in track.decisions]
    # One that was made before the peak holds on if nothing has changed since.
    in_force = next((missing for at, missing in reversed(told) if at < reached), 0.0)
    entries = [(at, missing) for at, missing in told if reached <= at < until]
    if not any(missing > 0 for _, missing in entries) and in_force > 0:
        entries = [(reached, in_force), *entries]
    while entries and entries[0][1] <= 0:
        entries.pop(0)
    if not entries:
        return None
    ends = [*(at for at, _ in entries[1:]), until]
    short_s = sum(end - at for (at, missing), end in zip(entries, ends, strict=True) if missing > 0)
    if short_s < (until - reached) / 2:
        return None
    foretold = sum(missing * (end - at) for (at, missing), end in zip(entries, ends, strict=True))
    return Growth(_waiting(track, until) - _waiting(track, entries[0][0]), foretold)


def _waiting(track: Overloaded, at_s: float) -> float:
    """Drives sent and not yet worked off."""
    return track.sent_by(at_s) - track.worked_off_by(at_s)

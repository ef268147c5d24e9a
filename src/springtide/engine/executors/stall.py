"""When jobs of Spark count as stalled: by what Spark shows of them, without Spark."""

from dataclasses import dataclass, field

from springtide.dataflow.errors import StepFailed
from springtide.errors import BadValue

STALL_S = 300.0
"""How long jobs may go without a sign of progress, unless the app says otherwise."""
BUSY = 3
"""Jobs with running tasks may take three times as long: a task may wait ten minutes for its broker."""
EPOCH = 6
"""An epoch may go six times as long without a sign from any of its jobs, or from what runs between them."""


@dataclass(frozen=True)
class Stage:
    """What Spark shows of an active stage."""

    id: int
    attempt: int
    tasks: int
    running: int
    done: int
    failed: int

    def __str__(self) -> str:
        return f"stage {self.id}: {self.done} of {self.tasks} tasks done, {self.running} running, {self.failed} failed"


@dataclass(frozen=True)
class Sight:
    """What Spark shows of some jobs at a moment. Two that are equal show no progress between them."""

    jobs: tuple[int, ...] = ()
    stages: tuple[Stage, ...] = ()

    @property
    def running(self) -> int:
        return sum(stage.running for stage in self.stages)

    def __str__(self) -> str:
        jobs = f"job {', '.join(map(str, self.jobs))}" if self.jobs else "no job"
        return f"{jobs}; {'; '.join(map(str, self.stages)) or 'no stage has begun'}"


@dataclass
class Patience:
    """Looks at jobs from time to time, and tells when they have shown no progress for too long."""

    stall_s: float
    since_s: float
    """The clock at the last sign of progress."""
    _last: Sight = field(default_factory=Sight)

    def look(self, sight: Sight, now_s: float) -> float | None:
        """The seconds without progress, if they are too many. Where no job runs, there is none to stall."""
        if sight != self._last or not sight.jobs:
            self._last, self.since_s = sight, now_s
            return None
        waited_s = now_s - self.since_s
        return waited_s if waited_s > self.stall_s * (BUSY if sight.running else 1) else None


class Stalled(StepFailed):
    """A step's jobs made no progress and were cancelled."""


def stalled(step: str, doing: str, waited_s: float, sight: Sight) -> Stalled:
    """The error for a step whose jobs were cancelled."""
    reason = f"no task began or ended in {waited_s:.0f} s, so its jobs were cancelled. Spark showed {sight}"
    if sight.running:
        hint = "See what its tasks wait for (a broker, a store, a function of yours), or start with a larger stall_s="
    else:
        hint = "See whether the cluster has free executors for its tasks, or start with a larger stall_s="
    return Stalled(step, doing, reason, hint)


def checked_stall_s(stall_s: float) -> float:
    """The time itself; BadValue if it is none."""
    if not stall_s > 0:
        raise BadValue(f"expected stall_s above 0 seconds, got {stall_s!r}")
    return stall_s

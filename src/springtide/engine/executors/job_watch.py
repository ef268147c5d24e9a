"""Watches an app: jobs without progress are cancelled, an epoch without a sign of life ends the app."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from pyspark import SparkContext, SparkStageInfo

from springtide.engine.executors.stall import EPOCH, Patience, Sight, Stage, Stalled, stalled
from springtide.engine.spark.internals import tagged_jobs
from springtide.ids import Epoch
from springtide.logs import room_logger
from springtide.waits import WaitedTooLong, let_go

LOOK_S = 2.0
"""From one look to the next; jobs that take less are never looked at."""
_NUMBERS = count()

log = room_logger(__name__)


@dataclass
class Block:
    """Jobs that run in one `with`."""

    tag: str
    step: str
    doing: str
    patience: Patience
    stalled: Stalled | None = None


class JobWatch:
    """A thread beside the epochs. Use `job` around whatever runs Spark jobs, `epoch` around an epoch."""

    def __init__(self, context: SparkContext, stall_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.stall_s = stall_s
        self.stuck: WaitedTooLong | None = None
        """Why the app can't go on, if an epoch has given no sign for too long."""
        self.on_stuck: Callable[[], None] = lambda: None
        self._context, self._clock = context, clock
        self._blocks: dict[str, Block] = {}
        self._epoch: Epoch | None = None
        self._sign: object = None
        """What the last look has seen of the epoch; another sight is a sign of life."""
        self._signs, self._since_s = 0, clock()
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="springtide-job-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            let_go(self._thread)

    @contextmanager
    def job(self, step: str, doing: str = "running its job") -> Iterator[None]:
        """Around jobs of this thread: raises Stalled, in the name of the step, if they had to be cancelled."""
        tag = f"springtide-watch-{next(_NUMBERS)}"
        block = Block(tag, step, doing, Patience(self.stall_s, self._clock()))
        self._context.addJobTag(tag)
        self._enter(block)
        try:
            yield
        except Exception as error:
            if block.stalled is not None:
                raise block.stalled from error
            raise
        finally:
            self._leave(block)
            self._context.removeJobTag(tag)

    @contextmanager
    def epoch(self, epoch: Epoch) -> Iterator[None]:
        """Around an epoch."""
        with self._lock:
            self._epoch, self._signs = epoch, self._signs + 1
        try:
            yield
        finally:
            with self._lock:
                self._epoch = None

    def _enter(self, block: Block) -> None:
        with self._lock:
            self._blocks[block.tag], self._signs = block, self._signs + 1

    def _leave(self, block: Block) -> None:
        with self._lock:
            del self._blocks[block.tag]
            self._signs += 1

    def _run(self) -> None:
        while not self._stopped.wait(min(LOOK_S, self.stall_s / 4)):
            try:
                self.look()
            except Exception:
                # A job that ends while it is looked at, or Spark that stops: the next look tells.
                log.debug("looking at jobs failed", exc_info=True)

    def look(self) -> None:
        """One look at everything that runs."""
        with self._lock:
            blocks, epoch, signs = list(self._blocks.values()), self._epoch, self._signs
        sights = [self._look_at(block) for block in blocks]
        now_s, sign = self._clock(), (epoch, signs, sights)
        if epoch is None or sign != self._sign:
            self._sign, self._since_s = sign, now_s
        elif self.stuck is None and now_s - self._since_s > EPOCH * self.stall_s:
            self._give_up(epoch, now_s - self._since_s, blocks)

    def _look_at(self, block: Block) -> Sight:
        sight = self.sight(block.tag)
        waited_s = block.patience.look(sight, self._clock())
        if waited_s is not None:
            if block.stalled is None:
                block.stalled = stalled(block.step, block.doing, waited_s, sight)
                log.error("%s", block.stalled)
            self._context.cancelJobsWithTag(block.tag)
        return sight

    def sight(self, tag: str) -> Sight:
        """What Spark shows of the jobs with a tag that are active."""
        tracker = self._context.statusTracker()
        jobs = tagged_jobs(self._context, tag)
        infos = [tracker.getJobInfo(job) for job in jobs]
        mine = {int(stage) for info in infos if info is not None for stage in info.stageIds}
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds() if stage in mine]
        return Sight(
            tuple(jobs),
            tuple(_stage(info) for info in stages if info is not None),
        )

    def _give_up(self, epoch: Epoch, waited_s: float, blocks: list[Block]) -> None:
        doing = "; ".join(f"step {block.step!r} is {block.doing}" for block in blocks) or "no job of it runs"
        remedy = f"Last seen: {doing}. Start the app again: it goes on where it was. A larger stall_s= waits longer"
        self.stuck = WaitedTooLong(f"a sign of epoch {epoch}", waited_s, remedy)
        log.error("%s", self.stuck)
        self.on_stuck()


def _stage(info: SparkStageInfo) -> Stage:
    counts = (info.numTasks, info.numActiveTasks, info.numCompletedTasks, info.numFailedTasks)
    return Stage(info.stageId, info.currentAttemptId, *counts)

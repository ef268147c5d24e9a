"""One epoch: read the plan, update every keyed step, commit the manifest, publish, collect garbage."""

import threading
import time
from dataclasses import replace

from pyspark.sql import DataFrame

from springtide import faults
from springtide.blocks.collect import Collector
from springtide.blocks.errors import LineageBroken
from springtide.blocks.manifest import Manifest, TornManifest
from springtide.dataflow.errors import StepFailed
from springtide.engine.durability.history import History
from springtide.engine.durability.stop_state import StopState
from springtide.engine.epoch.accounts import retold
from springtide.engine.epoch.alignment import HeldBack, held_back
from springtide.engine.epoch.closing import Closing, due_steps
from springtide.engine.epoch.compute import EpochComputation
from springtide.engine.epoch.computed import Computed
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.epoch.publisher import Publisher
from springtide.engine.epoch.reporter import Reporter
from springtide.engine.executors.job_watch import LOOK_S
from springtide.engine.executors.stall import Stalled
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.spark.session import prepare_epoch_session
from springtide.engine.wire.job_errors import noted
from springtide.engine.wire.retry_signals import GoBack, Halted, Replan
from springtide.engine.wire.stopwatch import Stopwatch
from springtide.engine.worker.cleanup import Housekeeping, Leftovers
from springtide.ids import Epoch
from springtide.migration.phase import Point
from springtide.plan.plan import Plan
from springtide.plan.shedding import NOTHING


class Stopped(Exception):
    """An epoch was offered after the app had been stopped; Spark will offer it again."""


class EpochRunner:
    """Runs epochs one at a time; Structured Streaming calls it with each micro-batch."""

    def __init__(
        self,
        history: History,
        pool: ExecutorPool,
        collector: Collector,
        compute: EpochComputation,
        publish: Publisher,
        report: Reporter,
        closing: Closing | None = None,
    ) -> None:
        """With `closing`, the query ends with its input, and what is due then is closed before it does."""
        self.history, self.pool, self.collector = history, pool, collector
        self._compute, self._publish, self._report, self._closing = compute, publish, report, closing
        self.failure: BaseException | None = None
        self.shedding = NOTHING
        """The shed rates of epochs to come."""
        self._turn = threading.Lock()
        self.refused = False
        """An epoch came after the stop. Spark reports this as a failure of the query; it is not one."""
        self._stopped = self._prepared = False
        self._abandoned = False
        """Nobody waits for the epoch in flight any more, so it must not become true."""
        head = history.head
        self._leftovers = None if head is None else Leftovers(head.epoch, head.blocks())
        """What earlier drivers may have left on workers; gone with the first epoch."""
        self._forget = collector.start(head).blocks
        """Blocks whose local copies the next epoch's tasks remove."""

    def __call__(self, batch: DataFrame, epoch_id: int) -> None:
        """Run one epoch, or publish it again if an earlier driver had committed it."""
        with self._turn:
            if self._stopped:
                self.refused = True
                raise Stopped
            try:
                with self.pool.watch.epoch(Epoch(epoch_id)):
                    self._run(batch, Epoch(epoch_id))
            except BaseException as error:
                self.failure = error
                raise

    def waiting(self) -> str | None:
        """What waits for an epoch and cannot wait for rows; None if there is nothing."""
        return self.pool.waiting()

    def expiring(self) -> str | None:
        """What time has made due, and an epoch without rows would close; None if there is nothing."""
        steps = due_steps(self._compute.bound, self.history.head)
        return f"time is over for keys of {', '.join(map(repr, steps))}" if steps else None

    def held_back(self) -> dict[str, HeldBack]:
        """By source: those that are too far ahead of others to be read on."""
        head = self.history.head
        return {} if head is None else held_back(self._compute.bound.graph, head.operators, round(time.time() * 1e6))

    @property
    def in_flight(self) -> bool:
        """Whether an epoch runs now."""
        return self._turn.locked()

    def rest(self) -> None:
        """No row comes: what the app has done is made durable, if that is due. Returns at once if an epoch runs."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            if not self._stopped and self.history.head is not None:
                self.history.durability.idle(self.history.head)
        finally:
            self._turn.release()

    def stop(self) -> None:
        """Let the epoch in flight finish, and take no other; WaitedTooLong if it gives no sign of life."""
        while not self._turn.acquire(timeout=LOOK_S):
            if self.pool.watch.stuck is not None:
                self._stopped = self._abandoned = True
                raise self.pool.watch.stuck
        self._stopped = True
        self._turn.release()

    def finish(self) -> None:
        """After the last epoch: nothing is left to repeat, and nothing that nobody needs."""
        self.history.finish()
        self.collector.release(self.pool.state.pinned() | self.history.durability.pinned())

    def feed_spark(self) -> bool:
        """Before a query starts: let Spark go on after the last epoch; True if with one to be repeated, alone."""
        self._prepared = False
        repeats = self.history.feed_spark()
        if self._closing is not None and not repeats and not self.history.begun:
            self._closing.ask(self.history.head, afresh=True)
        return repeats

    def go_back(self) -> None:
        """Go on from the last durable checkpoint, after GoBack has ended the query."""
        with self._turn:
            self.failure = None
            dropped = self.history.go_back()
            self.pool.state.went_back(self.history.head)
            self._forget = (*dropped, *self.collector.start(self.history.head).blocks)

    def _run(self, batch: DataFrame, epoch: Epoch) -> None:
        faults.fire("epoch.start", epoch)
        watch = Stopwatch()
        with watch.part("plan"):
            if not self._prepared:
                prepare_epoch_session(batch.sparkSession)
                self._prepared = True
            rates = self.history.shedding(epoch) or self.shedding
            frames = self._compute.frames(batch, epoch, rates)
        with frames:
            head = self.history.head
            if head is not None and head.epoch == epoch:
                self.history.log.fence.check()
                done = Computed(head, self._before(head), reports=retold(head), replayed=True, published_again=True)
                frames.outputs.update(head.outputs)
            else:
                with noted(f"Epoch {epoch} is not committed: the next start runs it again"):
                    done = self._commit(frames, epoch, self._parent_of(epoch), watch)
            with (
                watch.part("publish"),
                noted(f"Epoch {epoch} is committed, and not published everywhere: the next start publishes it again"),
            ):
                if not self.history.published(epoch):
                    self._publish(frames, done.manifest)
        faults.fire("publish.after", epoch)
        with watch.part("collect"):
            if done.manifest is not head:
                let_go = self.pool.state.committed(done.manifest, done.parent, done.kept)
                self.history.durability.committed(done.manifest, repeated=done.replayed)
                pins = self.history.durability.pins()
                pinned = self.pool.state.pinned() | pins.blocks
                garbage = self.collector.committed(done.manifest, pinned, depositing=pins.depositing)
                self._forget = (*garbage.blocks, *let_go)
                self._leftovers = None
        self._report(done, watch)
        faults.fire("report.after", epoch)
        if self.pool.due(Point.EPOCHS):  # Now, and not when the next rows have come.
            self.pool.swap(StopState(self.history))
            self._before_again(Epoch(epoch + 1), Halted())
        if self._closing is not None and self.history.replay is None:
            self._closing.ask(self.history.head, afresh=not done.without_input)

    def _commit(self, frames: EpochDataFrames, epoch: Epoch, parent: Manifest | None, watch: Stopwatch) -> Computed:
        """Compute an epoch under one plan, again under another if workers failed it, and make it true."""
        with watch.part("compute"):
            plan = self.pool.boundary(parent)
            if self.pool.due(Point.EPOCHS):
                plan = self.pool.swap(StopState(self.history))
                parent = self._before_again(epoch, Halted())
            done = None
            retries = stalls = 0
            while done is None:
                try:
                    done = replace(self._compute(frames, epoch, parent, plan, self._housekeeping()), retries=retries)
                except (Replan, Halted, StepFailed) as error:
                    retries += 1
                    stalls += isinstance(error, Stalled)
                    frames.restart()
                    stops = self.pool.due(Point.ANYWHERE)
                    plan = self.pool.swap(StopState(self.history)) if stops else self._replan(error, parent, stalls)
                    parent = self._before_again(epoch, error)
        faults.fire("records.collected", epoch)
        with watch.part("commit"):
            if self._abandoned:
                raise Stopped
            done = replace(done, manifest=replace(done.manifest, account=self._report.account(done)))
            self.history.commit(done.manifest, done.parent)
        faults.fire("manifest.after", epoch)
        return replace(done, replayed=self.history.repeated(epoch))

    def _replan(self, error: Exception, parent: Manifest | None, stalls: int) -> Plan:
        """Another plan; the same one for jobs that stalled the first time, as what held them up may be over."""
        try:
            return self.pool.replan(error, parent)
        except Stalled:
            if stalls > 1:
                raise
            return self.pool.plan

    def _before_again(self, epoch: Epoch, cause: Exception) -> Manifest | None:
        """The state that an epoch starts from, if it must be read anew; GoBack if there is only an older one."""
        if not self.pool.durable:
            return self.history.head
        if not self.history.durability.covers(self.history.head):
            raise GoBack(epoch, cause) from cause
        return self.history.settle()

    def _parent_of(self, epoch: Epoch) -> Manifest | None:
        head = self.history.head
        expected = 0 if head is None else head.epoch + 1
        if epoch != expected:
            raise LineageBroken(epoch, expected - 1)
        return head

    def _before(self, manifest: Manifest) -> Manifest | None:
        """The manifest before one; None if there is none to read."""
        try:
            return self.history.log.read(Epoch(manifest.epoch - 1))
        except (FileNotFoundError, TornManifest):
            return None

    def _housekeeping(self) -> Housekeeping:
        return Housekeeping(self._forget, self.pool.departed(), self._leftovers)

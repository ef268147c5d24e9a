"""What the checkpoint says has happened: the epochs that are true, and those to be repeated."""

from functools import cached_property

from springtide import faults
from springtide.blocks.durable import DurableLog, Replay
from springtide.blocks.fence import UNFENCED, Fence
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, States
from springtide.blocks.store import Store
from springtide.engine.durability.checkpoints import Depositor, Durability
from springtide.engine.durability.interval import Interval
from springtide.engine.durability.spark_log import align, begun, done, entries, feed, fit, lineage
from springtide.errors import SpringtideError
from springtide.ids import Epoch
from springtide.plan.shedding import NOTHING, Shedding


class History:
    """The manifests, the durable checkpoint behind them, and Spark's own logs, kept in step.

    A driver starts with nothing on its workers, so it opens the history where all state is durable: at the last
    epoch, or at the last durable checkpoint, from which Spark is fed the epochs since, one by one.
    """

    def __init__(
        self,
        store: Store,
        every: Interval,
        deposit: Depositor,
        *,
        fence: Fence = UNFENCED,
        sources: int = 1,
        nudged: bool = False,
    ) -> None:
        """In a driver's own directory. The app has `sources` sources, and one more for nudges if it is `nudged`."""
        self.store = store
        self.sources, self._nudged = sources, nudged
        self.log = ManifestLog(store, fence=fence)
        self._checkpoints = DurableLog(store, fence)
        self.head = self.log.head()
        """The last epoch that is true."""
        self.replay = self._checkpoints.replay()
        """What is to be repeated, or was a moment ago."""
        if self.head is not None and not self.head.durable:
            base = self._checkpoints.last()
            if base is not None and base.epoch == self.head.epoch:
                self.log.reset(base)
                self.head = base
            else:
                self._rewind()
        self.durability = Durability(self._checkpoints, every, deposit, self.head)

    @property
    def generation(self) -> int:
        """The driver's, of those that this checkpoint has had."""
        return self.log.fence.generation

    @cached_property
    def lineage(self) -> str:
        """The checkpoint's own id, known once its first query has started."""
        return lineage(self.store)

    def commit(self, manifest: Manifest, parent: Manifest | None) -> None:
        """Make an epoch true."""
        if manifest.shedding.any and not self.durability.each_epoch:
            self._checkpoints.note_shed(manifest.epoch, manifest.shedding)
        self.log.commit(manifest, parent)
        self.head = manifest

    @property
    def durable(self) -> Manifest | None:
        """The last epoch whose state is in the durable store."""
        return self.head if self.durability.each_epoch else self.durability.last

    def rest(self, captured: States) -> States | None:
        """Make the last epoch durable at once, and go on from that; beside it, what was captured of the next.

        The states as they are in the durable store, or None if a worker was lost meanwhile.
        """
        kept = self.durability.now(self.head, captured)
        if kept is not None:
            self.settle()
        return kept

    def settle(self) -> Manifest | None:
        """The last epoch, which is durable, in the blocks of the durable store; from now on it goes by these."""
        found = self.durable
        if found is not None and found is not self.head:
            self.log.reset(found)
            self.head = found
        return self.head

    def published(self, epoch: Epoch) -> bool:
        """Whether every sink has had this epoch before it was repeated."""
        return self.replay is not None and epoch < self.replay.committed

    def repeated(self, epoch: Epoch) -> bool:
        """Whether this epoch was true once before."""
        return self.replay is not None and epoch <= self.replay.committed

    def shedding(self, epoch: Epoch) -> Shedding | None:
        """The shed rates that an epoch must have, because it was true with them before; None if it was not."""
        if self.replay is None or not self.repeated(epoch):
            return None
        return self.replay.shedding.get(epoch, NOTHING)

    def go_back(self) -> set[str]:
        """Go back to the last durable checkpoint; the blocks that were needed since."""
        self.durability.wait()
        before = set[str]() if self.head is None else self.head.blocks()
        self._rewind()
        self.durability.went_back(self.head)
        return before - (set[str]() if self.head is None else self.head.blocks())

    def finish(self) -> None:
        """The app stops: what it has done is made durable."""
        self.durability.finish(self.head)

    def feed_spark(self) -> bool:
        """Let Spark go on after the last epoch; True if that is with an epoch to be repeated, and it alone."""
        repeats = self._feed()
        fit(self.store, self.sources, nudged=self._nudged)
        return repeats

    @property
    def begun(self) -> bool:
        """Whether Spark has begun an epoch that it runs again first, as it does not know it as done."""
        return begun(self.store)

    def _feed(self) -> bool:
        head = -1 if self.head is None else self.head.epoch
        if self.replay is not None:
            left = [e for e in sorted(self.replay.entries) if e > head or (e == head and not done(self.store, e))]
            if left:
                feed(self.store, left[0], self.replay.entries[left[0]])
                return True
            self._checkpoints.repeated()
            self.replay = None
        else:
            align(self.store, None if self.head is None else self.head.epoch)
        return False

    def _rewind(self) -> None:
        base = self._checkpoints.last()
        after = -1 if base is None else base.epoch
        committed = -1 if self.head is None else self.head.epoch
        logged = entries(self.store, after)
        if self.replay is not None:
            committed = max(committed, self.replay.committed)
            logged = {**logged, **{e: entry for e, entry in self.replay.entries.items() if e > after}}
        _check_whole(sorted(logged), after, committed)
        known = {} if self.replay is None else self.replay.shedding
        shed = {e: rates for e, rates in known.items() if e > after} | self._checkpoints.shed_since(after)
        self.replay = Replay(committed, logged, shed)
        self._checkpoints.note(self.replay)
        faults.fire("replay.noted")
        self.head = self._checkpoints.go_back(self.log)


def _check_whole(logged: list[Epoch], after: int, committed: int) -> None:
    expected = list(range(after + 1, max(committed, *logged, after) + 1))
    if list(logged) != expected:
        raise CannotRepeat(after, sorted(set(expected) - set(logged)))


class CannotRepeat(SpringtideError):
    """Spark's log lacks epochs that would have to be repeated."""

    def __init__(self, after: int, lacking: list[int]) -> None:
        super().__init__(after, lacking)
        self.after, self.lacking = after, lacking

    def __str__(self) -> str:
        return (
            f"going back to the durable checkpoint of epoch {self.after} needs the offsets of every epoch since, and "
            f"Spark's log in the checkpoint lacks those of {', '.join(map(str, self.lacking))}. "
            "Restore the log, or start with a new --checkpoint"
        )

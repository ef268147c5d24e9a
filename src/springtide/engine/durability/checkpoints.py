"""How far back the app can go: every epoch is durable, or a checkpoint is made so every few of them."""

import time
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from typing import NamedTuple

from springtide.blocks.durable import DurableLog
from springtide.blocks.manifest import Manifest, States
from springtide.engine.durability.interval import Interval
from springtide.waits import WaitedTooLong

DEPOSIT_S = 3600.0
"""How long a durable checkpoint may take."""
LATE = 2
"""An epoch waits for a durable checkpoint once this many intervals have passed since the last one."""
REST_S = 10.0
"""An app without input makes its last epoch durable after this time, though no interval has passed."""

Depositor = Callable[[Sequence[States], Set[str]], list[States] | None]
"""Makes states durable, given the names of blocks that are; None if that could not be done now."""


class Pins(NamedTuple):
    """What must not be collected."""

    depositing: bool
    """Blocks are being written whose names nobody knows yet."""
    blocks: set[str]


class Durability:
    """The last durable checkpoint; the next one is made beside the epochs."""

    def __init__(
        self,
        log: DurableLog,
        every: Interval,
        deposit: Depositor,
        head: Manifest | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`head` is durable, as it is whenever a driver starts."""
        self.log, self.every, self._deposit = log, every, deposit
        self._clock = clock
        self._base, self._since = head, clock()
        self._quiet_since = clock()
        """The last epoch, or the last checkpoint that was begun without one."""
        self._stride = 1
        """Epochs that may be repeated from one durable checkpoint to the next."""
        self._coming: Manifest | None = None
        self._under_way: Future[States | None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="springtide-durable")
        if every.each_epoch or head is None:
            log.clear()
        else:
            log.commit(head)

    @property
    def each_epoch(self) -> bool:
        """Workers store every run durably at once."""
        return self.every.each_epoch

    def covers(self, head: Manifest | None) -> bool:
        """Whether all the state of the last epoch is in the durable store."""
        return self.each_epoch or _epoch(head) == _epoch(self._base)

    def committed(self, manifest: Manifest, *, repeated: bool = False) -> None:
        """An epoch is true: begin a checkpoint if one is due, wait for it if it is late, raise why if it failed.

        Epochs that are repeated are made durable after the first, and then at twice the distance each time, and waited
        for: else an app that fails before an interval is over would repeat the same epochs for ever.
        """
        if self.each_epoch:
            return
        self._quiet_since = self._clock()
        self._look(late=self._passed(manifest, 1 + LATE))
        further = repeated and manifest.epoch - _epoch(self._base) >= self._stride
        if self._under_way is None and (further or self._passed(manifest)):
            self._begin(manifest)
        if further:
            self._look(late=True)
            self._stride *= 2 if self.covers(manifest) else 1

    def idle(self, head: Manifest) -> None:
        """No epoch runs: begin a checkpoint if one is due, or if the app has been at rest for a while.

        Raises why the one before failed; the next is begun a while later.
        """
        if self.each_epoch:
            return
        self._look(late=False)
        quiet = self._clock() - self._quiet_since >= min(REST_S, self.every.seconds or REST_S)
        if self._under_way is None and not self.covers(head) and quiet:
            self._quiet_since = self._clock()
            self._begin(head)

    def _begin(self, manifest: Manifest) -> None:
        self._coming = manifest
        self._under_way = self._pool.submit(self._make, manifest, {})

    def _passed(self, manifest: Manifest, times: int = 1) -> bool:
        """True once `times` whole intervals have passed since the last durable checkpoint."""
        return self.every.passed(manifest.epoch - _epoch(self._base), self._clock() - self._since, times=times)

    def pinned(self) -> set[str]:
        """The state of the last durable checkpoint, and of the next."""
        needed = (m for m in (self._base, self._coming) if m is not None and not self.each_epoch)
        return set[str]().union(*(m.state_blocks() for m in needed))

    def pins(self) -> "Pins":
        """What garbage collection has to leave alone now."""
        # In this order: what a deposit that ends in between has written is among the blocks by then.
        depositing = self._under_way is not None and not self._under_way.done()
        return Pins(depositing, self.pinned())

    @property
    def last(self) -> Manifest | None:
        """The last durable checkpoint."""
        return self._base

    def now(self, head: Manifest | None, captured: States) -> States | None:
        """Make the last epoch durable at once, and what operators have made of the next, which is not true yet.

        The states as they are in the durable store, or None if a worker was lost meanwhile.
        """
        if self.each_epoch:
            return captured
        self.wait()
        self._look(late=True)
        if self.covers(head) and not captured:
            return captured
        made = self._pool.submit(self._make, head, captured)  # Jobs of its thread make way for epochs.
        return _result(made)

    def wait(self) -> None:
        """See the checkpoint under way end, well or not."""
        if self._under_way is not None and wait([self._under_way], DEPOSIT_S).not_done:
            raise _late()

    def went_back(self, base: Manifest | None) -> None:
        """The app goes on from the last durable checkpoint."""
        self._under_way, self._coming = None, None
        self._base, self._since = base, self._clock()
        self._quiet_since, self._stride = self._since, 1

    def finish(self, head: Manifest | None) -> None:
        """The app stops: make the last epoch durable, so that nothing has to be repeated."""
        self.wait()
        self._pool.shutdown(wait=False)
        if head is not None and not self.covers(head):
            self._make(head, {})

    def close(self) -> None:
        """Begin no other checkpoint, however the app ends."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _look(self, *, late: bool) -> None:
        if self._under_way is not None and (late or self._under_way.done()):
            done, self._under_way, self._coming = self._under_way, None, None
            _result(done)

    def _make(self, head: Manifest | None, captured: States) -> States | None:
        """A checkpoint of an epoch, unless there is one; and what was captured, all by one job."""
        stored, began = set[str]() if self._base is None else self._base.state_blocks(), self._clock()
        due = None if self.covers(head) else head
        made = self._deposit([captured] if due is None else [captured, due.operators], stored)
        if made is not None and due is not None:
            base = replace(due, operators=made[1], durable=True)
            self.log.commit(base)
            self._base, self._since = base, began
        return None if made is None else made[0]


def _result(made: "Future[States | None]") -> States | None:
    try:
        return made.result(DEPOSIT_S)
    except FutureTimeout:
        if made.done():  # It failed by itself, in the same way.
            raise
        raise _late() from None


def _late() -> WaitedTooLong:
    remedy = "See whether the durable store answers, and start the app again: it goes on where it was"
    return WaitedTooLong("a durable checkpoint", DEPOSIT_S, remedy)


def _epoch(manifest: Manifest | None) -> int:
    return -1 if manifest is None else manifest.epoch

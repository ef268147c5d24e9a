"""Epochs without rows, for what waits for an epoch when no row comes to bring one about."""

import threading
import time
from collections.abc import Callable

from springtide.engine.epoch.runner import EpochRunner
from springtide.logs import room_logger
from springtide.waits import let_go

LOOK_S = 0.1
"""Between two looks whether something waits."""
AGAIN_S = 5.0
"""How long a nudge may take to become an epoch; then there is another."""

QUIET_S = 2.0
"""How long there must be no epoch before one is made for what time has made due: while rows come, it needs none."""

log = room_logger(__name__)


class NudgePace:
    """When to nudge: once for every epoch that is needed, and only if one is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[int, float] | None = None

    def beats(self, because: str | None, head: int) -> bool:
        """Whether to nudge now, given what waits, if anything does, and the last epoch that is true."""
        if because is None:
            return False
        now = self._clock()
        if self._last is not None and self._last[0] == head and now - self._last[1] < AGAIN_S:
            return False  # The epoch is on its way.
        self._last = head, now
        return True


class IdleEpochs:
    """Looks, beside the epochs, whether something waits for the next one.

    Without a `nudge` it asks for none: an app that ends with its input is not kept from ending.
    """

    def __init__(
        self,
        runner: EpochRunner,
        nudge: Callable[[], None] | None,
        align: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner, self._nudge, self._align = runner, nudge, align
        self._rhythm, self._clock = NudgePace(clock), clock
        self._last_epoch = -1, clock()
        """The last epoch that was seen, and when it was seen first."""
        self._said = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="springtide-idle-epochs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        let_go(self._thread)

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            try:
                self.look()
                self._said = ""
            except Exception as error:
                # A worker that goes while it is looked at, a store that is away, Spark that stops: the next look tells.
                self._say(f"looking for what is due failed: {type(error).__name__}: {error}")

    def look(self) -> None:
        """Nudge if something waits for an epoch, and none runs."""
        if self._runner.in_flight:
            return
        self._align()
        if self._nudge is not None:
            self._ask(self._nudge)
        self._runner.rest()

    def _ask(self, nudge: Callable[[], None]) -> None:
        head = -1 if self._runner.history.head is None else self._runner.history.head.epoch
        because = self._runner.waiting() or (self._runner.expiring() if self._quiet(head) else None)
        if self._rhythm.beats(because, head):
            log.info("an epoch is due, with rows or without: %s", because)
            nudge()

    def _quiet(self, head: int) -> bool:
        """Whether there has been no epoch for a while."""
        epoch, since_s = self._last_epoch
        if epoch != head:
            self._last_epoch = head, self._clock()
            return False
        return self._clock() - since_s >= QUIET_S

    def _say(self, what: str) -> None:
        if what != self._said:
            log.warning("%s", what)
        self._said = what

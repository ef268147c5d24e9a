"""The roster as threads share it: whoever reads or changes it holds its lock, and nobody waits while holding it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from springtide.engine.ownership.roster import Roster
from springtide.ids import Epoch, WorkerId
from springtide.plan.plan import Plan


class NotHeld(RuntimeError):
    """The roster was used by a thread that does not hold its lock: a mistake in the engine."""


class SharedRoster:
    """Gives the roster to one thread at a time.

    Epochs wait for the lock, so nothing that takes its time is done while it is held: workers are waited for, asked
    for and let go before or afterwards.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._lock = threading.RLock()
        self._holder: int | None = None

    @contextmanager
    def held(self) -> Iterator[Roster]:
        """The roster, as long as the block runs; a thread that has it already may ask again."""
        with self._lock:
            before, self._holder = self._holder, threading.get_ident()
            try:
                yield self._roster
            finally:
                self._holder = before

    @property
    def mine(self) -> Roster:
        """The roster, for code that is called with the lock held; NotHeld if it is not."""
        if self._holder != threading.get_ident():
            raise NotHeld("expected a thread that holds the roster, got one that does not: use held()")
        return self._roster

    @property
    def begun(self) -> Epoch | None:
        """The last epoch that has begun."""
        with self.held() as roster:
            return roster.begun

    def ring_order(self) -> tuple[WorkerId, ...]:
        """The workers clockwise on the ring."""
        with self.held() as roster:
            return roster.ring.workers

    @property
    def plan(self) -> Plan:
        """The plan in force. It is replaced and never changed, so nobody has to hold anything to read it."""
        return self._roster.plan

"""A store that may be away for a while: calls are tried again until it is back, or patience ends.

An epoch that waits for its store takes no new rows: the sources hold them.
"""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from springtide.blocks.fence import Fence
from springtide.blocks.store import Data, Store, open_store
from springtide.blocks.store_errors import may_mend
from springtide.logs import room_logger

PATIENCE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0

Result = TypeVar("Result")

log = room_logger(__name__)


def patient_store(url: str) -> "PatientStore":
    """The store at a path or an fsspec URL, for whoever writes to it while an app runs."""
    return PatientStore(open_store(url))


class PatientStore:
    """Passes calls on, again and again if need be."""

    def __init__(
        self,
        store: Store,
        patience_s: float = PATIENCE_S,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store, self.patience_s = store, patience_s
        self.url = store.url
        self._now, self._wait = now, wait

    def put(self, name: str, data: Data) -> None:
        self._patiently(lambda: self.store.put(name, data))

    def put_if_absent(self, name: str, data: Data) -> None:
        self._patiently(lambda: self.store.put_if_absent(name, data))

    def copy(self, name: str, to: str) -> None:
        self._patiently(lambda: self.store.copy(name, to))

    def get(self, name: str) -> bytes:
        return self._patiently(lambda: self.store.get(name))

    def list(self, prefix: str) -> list[str]:
        return self._patiently(lambda: self.store.list(prefix))

    def delete(self, names: Iterable[str]) -> None:
        some = tuple(names)
        self._patiently(lambda: self.store.delete(some))

    def remove(self, directory: str) -> None:
        self._patiently(lambda: self.store.remove(directory))

    def tidy(self, prefix: str) -> None:
        self._patiently(lambda: self.store.tidy(prefix))

    def _patiently(self, call: Callable[[], Result]) -> Result:
        return patiently(call, self.patience_s, now=self._now, wait=self._wait)


def patiently(
    call: Callable[[], Result],
    patience_s: float = PATIENCE_S,
    *,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Result:
    """Do what may be done again, until it succeeds, fails in a way that waiting does not mend, or patience ends."""
    deadline, pause = now() + patience_s, FIRST_PAUSE_S
    while True:
        try:
            return call()
        except OSError as error:
            if not may_mend(error) or now() >= deadline:
                raise
            if pause == FIRST_PAUSE_S:
                log.warning("waiting up to %.0f s for the store to be back: %s", patience_s, error)
        wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


class FencedStore(PatientStore):
    """Writes for a driver that still holds the checkpoint: for what is told of an app, and nothing rests on.

    A driver that stops between the check and the write may still write late; see `springtide.blocks.fence` for what
    must be true.
    """

    def __init__(self, store: Store, fence: Fence) -> None:
        super().__init__(store)
        self._fence = fence

    def put(self, name: str, data: Data) -> None:
        self._fence.check()
        super().put(name, data)

    def put_if_absent(self, name: str, data: Data) -> None:
        self._fence.check()
        super().put_if_absent(name, data)

    def delete(self, names: Iterable[str]) -> None:
        self._fence.check()
        super().delete(names)

"""A store that may be away for a while: calls are tried again until it is back, or patience ends.

An epoch that waits for its store takes no new rows: the sources hold them.
"""

import errno
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from springtide.blocks.errors import AlreadyThere, StoreFailed
from springtide.blocks.store import Data, Store

PATIENCE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
FINAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
"""What waiting does not mend."""

Result = TypeVar("Result")


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
        deadline, pause = self._now() + self.patience_s, FIRST_PAUSE_S
        while True:
            try:
                return call()
            except (AlreadyThere, FileNotFoundError):
                raise
            except OSError as error:
                if not _away(error) or self._now() >= deadline:
                    raise
            self._wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)


def _away(error: OSError) -> bool:
    cause = error.__cause__ if isinstance(error, StoreFailed) else error
    return not isinstance(cause, OSError) or cause.errno not in FINAL

"""A thread of a benchmark that looks at something again and again, beside what is measured."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from springtide.waits import let_go


class Watch(ABC):
    """Looks every few seconds; use it around what is to be watched."""

    def __init__(self, name: str, every_s: float) -> None:
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"springtide-{name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        let_go(self._thread)

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            self.look()

    @abstractmethod
    def look(self) -> None:
        """Called again and again, in the thread."""

"""Numbered JSON objects in the checkpoint, a line each, that can be read while the app runs and after it has ended."""

import json
from collections.abc import Iterator
from typing import Any

from springtide.blocks.rotation import rotate
from springtide.blocks.store import Store
from springtide.confidential import hide_in

KEPT = 256
"""Files that are kept of a directory, the last ones."""


class Lines:
    """A directory of files with some lines each, named by the first number: object stores can't append.

    The oldest files go when there are more than are kept.
    """

    def __init__(self, store: Store, directory: str, chunk: int, kept: int = KEPT) -> None:
        self.store, self.directory, self.chunk, self.kept = store, directory, chunk, kept
        self._lines: dict[int, str] = {}
        """Those that were put, of the files that are there."""
        self._last = -1
        """The first number of the last file that was written."""

    def read(self) -> Iterator[dict[str, Any]]:
        """All of them, oldest first."""
        for name in self.store.list(self.directory):
            yield from map(json.loads, self.store.get(f"{self.directory}/{name}").decode().splitlines())

    def put(self, number: int, fields: dict[str, Any]) -> None:
        """Write a line, in place of an earlier one of the same number; its file is rewritten."""
        self.remember(number, fields)
        first = number - number % self.chunk
        if first > self._last:
            self._last = first
            self._rotate()
        lines = (self._lines[n] for n in range(first, first + self.chunk) if n in self._lines)
        self.store.put(f"{self.directory}/{first:09d}.jsonl", "".join(f"{line}\n" for line in lines).encode())

    @property
    def oldest(self) -> int:
        """The lowest number that is remembered; 0 if there is none."""
        return min(self._lines, default=0)

    def _rotate(self) -> None:
        """A file begins: the oldest go, so that there are `kept` files with the new one."""
        left = rotate(self.store, self.directory, self.kept - 1)
        if left:
            oldest = int(left[0].partition(".")[0])
            self._lines = {number: line for number, line in self._lines.items() if number >= oldest}

    def remember(self, number: int, fields: dict[str, Any]) -> None:
        """A line that an earlier driver wrote: it stays when its file is rewritten."""
        self._lines[number] = json.dumps(hide_in(fields))

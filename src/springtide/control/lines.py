"""Numbered JSON objects in the checkpoint, a line each, that can be read while the app runs and after it has ended."""

import json
from collections.abc import Iterator
from typing import Any

from springtide.blocks.store import Store
from springtide.confidential import hide_in


class Lines:
    """A directory of files with some lines each, named by the first number: object stores can't append."""

    def __init__(self, store: Store, directory: str, chunk: int) -> None:
        self.store, self.directory, self.chunk = store, directory, chunk
        self._lines: dict[int, str] = {}
        """Those that were put, of the files that were written."""

    def read(self) -> Iterator[dict[str, Any]]:
        """All of them, oldest first."""
        for name in self.store.list(self.directory):
            yield from map(json.loads, self.store.get(f"{self.directory}/{name}").decode().splitlines())

    def put(self, number: int, fields: dict[str, Any]) -> None:
        """Write a line, in place of an earlier one of the same number; its file is rewritten."""
        self.remember(number, fields)
        first = number - number % self.chunk
        lines = (self._lines[n] for n in range(first, first + self.chunk) if n in self._lines)
        self.store.put(f"{self.directory}/{first:09d}.jsonl", "".join(f"{line}\n" for line in lines).encode())

    def remember(self, number: int, fields: dict[str, Any]) -> None:
        """A line that an earlier driver wrote: it stays when its file is rewritten."""
        self._lines[number] = json.dumps(hide_in(fields))

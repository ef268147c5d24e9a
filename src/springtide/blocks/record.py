"""The app's record in its checkpoint: what must not change between two starts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.blocks.app_changes import SOURCE, STEP, in_words, telling
from springtide.blocks.errors import NewerFormat
from springtide.blocks.store import Store
from springtide.errors import SpringtideError

PATH = "app.json"
FORMAT = 2
"""2: what a driver keeps is in a directory of its generation."""
NAME, SLICES, SOURCES = "the app's name", "the number of slices", "the order of its sources"


class AppChanged(SpringtideError):
    """The app differs from the one that wrote the checkpoint, in a way its state can't follow."""

    def __init__(self, step: str, what: str, recorded: object, now: object) -> None:
        super().__init__(step, what, recorded, now)
        self.step, self.what, self.recorded, self.now = step, what, recorded, now

    def __str__(self) -> str:
        who = f"{'source' if self.what == SOURCE else 'step'} {self.step!r}"
        return (
            f"{'the app' if self.what in (NAME, SLICES, SOURCES) else who} does not fit the state in the checkpoint: "
            f"{in_words(self.what, self.recorded, self.now)}. "
            "Nothing was written. Undo the change, or start with a new --checkpoint"
        )


@dataclass(frozen=True)
class AppRecord:
    """The app's name, its number of slices, its sources, and each keyed operator's kind and layout."""

    app: str
    slices: int
    operators: dict[str, dict[str, Any]]
    sources: tuple[str, ...] = ()
    """In their order: Spark's offsets go by it."""
    source_kinds: Mapping[str, str] = field(default_factory=dict)
    """By source: how it is read, such as `kafka`; the offsets of one kind mean nothing to another."""

    def check(self, store: Store) -> None:
        """Compare with what the checkpoint says; writes nothing."""
        try:
            fields = json.loads(store.get(PATH))
        except FileNotFoundError:
            return
        if fields["format"] > FORMAT:
            raise NewerFormat("the checkpoint", fields["format"], FORMAT)
        _same(self.app, NAME, fields["app"], self.app)
        _same(self.app, SLICES, fields["slices"], self.slices)
        if "sources" in fields:
            _same(self.app, SOURCES, fields["sources"], list(self.sources))
        for name, kind in fields.get("source_kinds", {}).items():
            _same(name, SOURCE, kind, self.source_kinds.get(name, kind))
        for name, recorded in fields["operators"].items():
            if name not in self.operators:
                added = [step for step in self.operators if step not in fields["operators"]]
                raise AppChanged(name, STEP, name, added)
            now = json.loads(json.dumps(self.operators[name]))
            for what in sorted(recorded, key=telling):
                _same(name, what, recorded[what], now.get(what))

    def write(self, store: Store) -> None:
        """Record the app; only the holder of the checkpoint does so, after `check`."""
        data = self._encode()
        try:
            if store.get(PATH) == data:
                return
        except FileNotFoundError:
            pass
        store.put(PATH, data)

    def _encode(self) -> bytes:
        fields = {
            "format": FORMAT,
            "app": self.app,
            "slices": self.slices,
            "sources": self.sources,
            "source_kinds": dict(self.source_kinds),
            "operators": self.operators,
        }
        return json.dumps(fields, indent=1, sort_keys=True).encode()


def _same(step: str, what: str, recorded: object, now: object) -> None:
    if recorded != now:
        raise AppChanged(step, what, recorded, now)

"""The app's record in its checkpoint: what must not change between two starts."""

import json
from dataclasses import dataclass
from typing import Any

from springtide.blocks.errors import NewerFormat
from springtide.blocks.store import Store
from springtide.errors import SpringtideError

PATH = "app.json"
FORMAT = 1


class AppChanged(SpringtideError):
    """The app differs from the one that wrote the checkpoint, in a way its state can't follow."""

    def __init__(self, step: str, what: str, recorded: object, now: object) -> None:
        super().__init__(step, what, recorded, now)
        self.step, self.what, self.recorded, self.now = step, what, recorded, now

    def __str__(self) -> str:
        return (
            f"step {self.step!r}: {self.what} was {self.recorded} when the checkpoint was written and is {self.now} "
            "now. Nothing was written. Undo the change, or start with a new --checkpoint"
        )


@dataclass(frozen=True)
class AppRecord:
    """The app's name, its number of slices, its sources, and each keyed operator's kind and layout."""

    app: str
    slices: int
    operators: dict[str, dict[str, Any]]
    sources: tuple[str, ...] = ()
    """In their order: Spark's offsets go by it."""

    def check(self, store: Store) -> None:
        """Compare with what the checkpoint says; writes nothing."""
        try:
            fields = json.loads(store.get(PATH))
        except FileNotFoundError:
            return
        if fields["format"] > FORMAT:
            raise NewerFormat("the checkpoint", fields["format"], FORMAT)
        _same(self.app, "the app's name", fields["app"], self.app)
        _same(self.app, "the number of slices", fields["slices"], self.slices)
        if "sources" in fields:
            _same(self.app, "the order of its sources", fields["sources"], list(self.sources))
        for name, recorded in fields["operators"].items():
            if name not in self.operators:
                raise AppChanged(name, "the step", "a keyed operator", "not in the app")
            now = json.loads(json.dumps(self.operators[name]))
            for what in sorted(recorded):
                _same(name, f"its {what}", recorded[what], now.get(what))

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
            "operators": self.operators,
        }
        return json.dumps(fields, indent=1, sort_keys=True).encode()


def _same(step: str, what: str, recorded: object, now: object) -> None:
    if recorded != now:
        raise AppChanged(step, what, recorded, now)

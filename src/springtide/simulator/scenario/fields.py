"""Reads a scenario's tables strictly: each value is checked, and what nobody asked for is refused."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from springtide.errors import BadValue


class BadScenario(BadValue):
    """A scenario that says something else than it should."""

    def __init__(self, key: str, expected: str, found: object) -> None:
        super().__init__(key, expected, found)
        self.key, self.expected, self.found = key, expected, found

    def __str__(self) -> str:
        return f"{self.key}: expected {self.expected}, got {'nothing' if self.found is None else repr(self.found)}"


REQUIRED: Any = object()
"""The default of a value that must be there."""


class Fields:
    """One table; `path` is what errors call it."""

    def __init__(self, table: object, path: str = "") -> None:
        if not isinstance(table, Mapping):
            raise BadScenario(path or "the scenario", "a table", table)
        self.path = path
        self._left = dict(table)
        self._known: list[str] = []

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        return name in self._left

    def number(self, name: str, default: Any = REQUIRED, *, least: float = 0.0, most: float = math.inf) -> float:
        """A number from `least` to `most`."""
        value = self._take(name, default, "a number")
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise BadScenario(self.key(name), f"a number{_within(least, most)}", value)
        return float(value)

    def positive(self, name: str, default: Any = REQUIRED) -> float:
        value = self.number(name, default)
        if not value > 0:
            raise BadScenario(self.key(name), "a number above 0", value)
        return value

    def whole(self, name: str, default: Any = REQUIRED, *, least: int = 0) -> int:
        value = self._take(name, default, "a whole number")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadScenario(self.key(name), f"a whole number{_within(least, math.inf)}", value)
        return value

    def flag(self, name: str, default: Any = REQUIRED) -> bool:
        value = self._take(name, default, "true or false")
        if not isinstance(value, bool):
            raise BadScenario(self.key(name), "true or false", value)
        return value

    def text(self, name: str, default: Any = REQUIRED) -> str:
        value = self._take(name, default, "a text")
        if not isinstance(value, str) or not value:
            raise BadScenario(self.key(name), "a text", value)
        return value

    def choice(self, name: str, options: Collection[str], default: Any = REQUIRED) -> str:
        expected = f"one of {', '.join(map(repr, sorted(options)))}"
        value = self._take(name, default, expected)
        if value not in options:
            raise BadScenario(self.key(name), expected, value)
        return str(value)

    def texts(self, name: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """One text or more."""
        value = self._take(name, default, "a list of texts")
        if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) and v for v in value):
            raise BadScenario(self.key(name), "a list of one text or more", value)
        return tuple(value)

    def pairs(self, name: str) -> tuple[tuple[float, float], ...]:
        """A list of pairs of numbers that are not negative."""
        expected = "a list of pairs of numbers such as [[0, 100], [60, 400]]"
        value = self._take(name, REQUIRED, expected)
        found = []
        for pair in value if isinstance(value, list) else [value]:
            if not isinstance(pair, list) or len(pair) != 2 or not all(_is_number(v) for v in pair):
                raise BadScenario(self.key(name), expected, value)
            found.append((float(pair[0]), float(pair[1])))
        if not found:
            raise BadScenario(self.key(name), expected, value)
        return tuple(found)

    def table(self, name: str, default: Any = REQUIRED) -> "Fields":
        return Fields(self._take(name, default, "a table"), self.key(name))

    def tables(self, name: str, default: Any = REQUIRED) -> Iterator["Fields"]:
        """The tables of a list of them."""
        value = self._take(name, default, "a list of tables")
        if not isinstance(value, list | tuple):
            raise BadScenario(self.key(name), f"a list of tables, written as [[{self.key(name)}]]", value)
        return (Fields(table, f"{self.key(name)}[{i}]") for i, table in enumerate(value))

    def rest(self) -> dict[str, Any]:
        """All that was not taken yet."""
        left, self._left = self._left, {}
        return left

    def end(self) -> None:
        """Nothing else may be there."""
        for name, value in self._left.items():
            raise BadScenario(self.key(name), f"only the keys {', '.join(sorted(self._known))}", value)

    def _take(self, name: str, default: Any, expected: str) -> Any:
        self._known.append(name)
        value = self._left.pop(name, default)
        if value is REQUIRED:
            raise BadScenario(self.key(name), expected, None)
        return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _within(least: float, most: float) -> str:
    if most < math.inf:
        return f" from {least:g} to {most:g}"
    return f" of {least:g} or more"

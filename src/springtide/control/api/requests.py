"""What a request asks for, read strictly: every field is known, and has the type and form it should have."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from springtide.control.api.protocol import Controls, Options, Refused
from springtide.ids import NAME
from springtide.migration.strategies import DEFAULT, names

MOST_WORKERS = 10_000
MOST_SLICES = 1_000_000
HOW = ("strategy", "slices_an_epoch", "hottest_first")
"""The fields that say how slices move."""

_RANGES = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")

Fields = dict[str, Any]


@dataclass(frozen=True)
class ScaleRequest:
    """Run on this many workers."""

    workers: int
    strategy: str
    options: Options

    @classmethod
    def decode(cls, body: bytes) -> "ScaleRequest":
        fields = _fields(body, ("workers", "force", *HOW), '{"workers": 4}')
        options = replace(_options(fields), force=_flag(fields, "force"))
        return cls(_field(fields, "workers", _count), _strategy(fields), options)

    def apply(self, controls: Controls) -> dict[str, Any]:
        return controls.scale(self.workers, self.strategy, self.options)


@dataclass(frozen=True)
class MoveRequest:
    """Let a worker own these slices of an operator."""

    operator: str
    slices: str
    to: str
    strategy: str
    options: Options

    @classmethod
    def decode(cls, body: bytes) -> "MoveRequest":
        example = '{"operator": "counts", "slices": "3-9", "to": "1"}'
        fields = _fields(body, ("operator", "slices", "to", *HOW), example)
        return cls(
            _field(fields, "operator", _id),
            _field(fields, "slices", _ranges),
            _field(fields, "to", _id),
            _strategy(fields),
            _options(fields),
        )

    def apply(self, controls: Controls) -> dict[str, Any]:
        return controls.move(self.operator, self.slices, self.to, self.strategy, self.options)


@dataclass(frozen=True)
class CancelRequest:
    """End the migration under way."""

    @classmethod
    def decode(cls, body: bytes) -> "CancelRequest":
        _fields(body, (), "{}")
        return cls()

    def apply(self, controls: Controls) -> dict[str, Any]:
        return controls.cancel()


def fields(body: bytes, example: str) -> Fields:
    """The fields of a JSON object."""
    try:
        found = json.loads(body.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):  # Brackets in thousands are no reason to fail.
        raise Refused(f"the body is not JSON: send an object such as {example}") from None
    if not isinstance(found, dict):
        raise Refused(f"the body is a JSON {type(found).__name__}: send an object such as {example}")
    return found


def _fields(body: bytes, known: tuple[str, ...], example: str) -> Fields:
    found = fields(body, example)
    strange = sorted(set(found) - set(known))
    if strange:
        expected = f"the fields are {', '.join(known)}" if known else "there are no fields"
        raise Refused(f"{_shown(strange[0])} is not a field here: {expected}; send an object such as {example}")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> Fields:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Refused("a field is there twice: send every field once")
    return fields


def _field(fields: Fields, name: str, read: Callable[[str, object], Any]) -> Any:
    if name not in fields:
        raise Refused(f"the field {name!r} is missing: add it")
    return read(name, fields[name])


def _strategy(fields: Fields) -> str:
    strategy = fields.get("strategy", DEFAULT)
    if strategy not in names():
        raise Refused(f"the strategy is {_shown(strategy)}: choose one of {', '.join(names())}")
    return str(strategy)


def _options(fields: Fields) -> Options:
    hottest_first = _flag(fields, "hottest_first")
    at_once = fields.get("slices_an_epoch")
    return Options(None if at_once is None else _count("slices_an_epoch", at_once, MOST_SLICES), hottest_first)


def _flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise Refused(f"{name!r} is {_shown(value)}: expected true or false")
    return value


def _count(name: str, value: object, most: int = MOST_WORKERS) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Refused(f"{name!r} is {_shown(value)}: expected a whole number from 1 to {most}")
    return value


def _id(name: str, value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise Refused(f"{name!r} is {_shown(value)}: expected 1 to 80 letters, digits, '_' or '-'")
    return value


def _ranges(name: str, value: object) -> str:
    """Slices such as 3-9,12: which of them exist is for the app to say."""
    if not isinstance(value, str) or not _RANGES.fullmatch(value) or not all(map(_ascends, value.split(","))):
        raise Refused(f"{name!r} is {_shown(value)}: expected numbers and ascending ranges such as '3-9,12'")
    return value


def _ascends(part: str) -> bool:
    first, _, last = part.partition("-")
    return not last or int(first) <= int(last)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 100 else f"{text[:97]}..."

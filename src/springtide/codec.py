"""Values as JSON, and back: dataclasses become objects, sets of slices become ranges.

What is read is checked against the types of the fields. Fields that are not known are passed over, and fields that are
not there have their defaults, so that releases can read what others wrote.
"""

import json
from dataclasses import is_dataclass
from typing import Any, TypeVar

import msgspec

from springtide.errors import BadValue

Kind = TypeVar("Kind")


class Unreadable(BadValue):
    """A text is not JSON, or a field of it is not what it should be; the message names the field."""


def dumps(value: object, *, sort_keys: bool = False) -> str:
    """A value as a line of JSON."""
    return json.dumps(value, default=_plain, sort_keys=sort_keys)


def plain(value: object) -> Any:
    """A value as dicts, lists and the like, for code that adds fields of its own."""
    return json.loads(dumps(value))


def loads(kind: type[Kind], text: str | bytes) -> Kind:
    """The value that `dumps` wrote."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # Brackets in thousands are no reason to fail.
        raise Unreadable(f"it is not JSON: {error}") from error
    return convert(kind, found)


def convert(kind: type[Kind], found: object) -> Kind:
    """The value that `plain` took apart; parts that are values already stay as they are."""
    try:
        return msgspec.convert(found, kind, dec_hook=_parsed, str_keys=True)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)) from error


def _plain(value: object) -> object:
    """What JSON has no form for: a dataclass as its fields, and what can be parsed as its text."""
    if is_dataclass(value):
        return vars(value)
    if hasattr(value, "parse"):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def _parsed(kind: Any, text: object) -> object:
    """Of a kind that is written as its text."""
    if not isinstance(text, str):
        raise ValueError(f"Expected the text of a {kind.__name__}, got {text!r}")
    return kind.parse(text)

"""The domain's small types: what a number or a name stands for."""

import re
from typing import NewType

from springtide.errors import BadValue

Epoch = NewType("Epoch", int)
"""One micro-batch, by its batch id; the first is 0."""

SliceId = NewType("SliceId", int)
"""A fixed share of a keyed operator's key space."""

InstanceId = NewType("InstanceId", int)
"""One Spark task's share of a keyed operator: a set of slices."""

WorkerId = NewType("WorkerId", str)
"""A Spark executor."""

PlanVersion = NewType("PlanVersion", int)
"""Which plan an epoch ran under."""

NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BadName(BadValue):
    """A name that would not be safe as a path or an id."""

    def __init__(self, what: str, name: object) -> None:
        super().__init__(what, name)
        self.what, self.name = what, name

    def __str__(self) -> str:
        return (
            f"{self.what} {self.name!r} is not a valid name: "
            "use 1 to 80 letters, digits, '_' or '-', for example 'word-counts'"
        )


def valid_name(what: str, name: object) -> str:
    """Return `name` if it is safe as an id and as a path segment."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadName(what, name)
    return name

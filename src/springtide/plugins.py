"""What other packages add to Springtide: each thing by an entry point of its kind."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from springtide.errors import SpringtideError
from springtide.logs import room_logger

Thing = TypeVar("Thing")

log = room_logger(__name__)


class BrokenPlugin(SpringtideError):
    """A package offers something that cannot be imported, or is of another kind."""

    def __init__(self, group: str, name: str, value: str, reason: str) -> None:
        super().__init__(group, name, value, reason)
        self.group, self.name, self.value, self.reason = group, name, value, reason

    def __str__(self) -> str:
        return (
            f"the entry point {self.name!r} of the group {self.group!r} should give {self.value!r}, and it cannot be "
            f"used: {self.reason}. Mend or remove the package that offers it"
        )


class Registry(Mapping[str, Thing]):
    """Things by name: our own, and those that other packages offer under the names that are left.

    Others are imported when they are asked for, and listed without being imported. `made` turns a name and what a
    package offers under it into a thing.
    """

    def __init__(
        self, group: str, own: Mapping[str, Thing], made: Callable[[str, Any], Thing] = lambda _, found: found
    ) -> None:
        self.group, self._own, self._made = group, own, made

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        found = {}
        for offered in entry_points(group=self.group):
            if offered.name in self._own or offered.name in found:
                log.warning("%s: %r is taken, so %r is left out", self.group, offered.name, offered.value)
            else:
                found[offered.name] = offered
        return found

    def __getitem__(self, name: str) -> Thing:
        if name in self._own:
            return self._own[name]
        offered = self._others[name]
        try:
            return self._made(name, offered.load())
        except (ImportError, AttributeError, TypeError) as error:
            raise BrokenPlugin(self.group, name, offered.value, str(error)) from error

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others

    def __len__(self) -> int:
        return len(self._own) + len(self._others)


def offered(group: str, module: str, name: str) -> Any:
    """What a module has beside its own names, for its `__getattr__`; AttributeError if nobody offers it."""
    others: Registry[Any] = Registry(group, {})
    if name not in others:
        raise AttributeError(f"module {module!r} has no attribute {name!r}, and no package offers one")
    return others[name]

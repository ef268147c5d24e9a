"""A worker as the plan sees it: where it is, and what it has room for."""

from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.ids import WorkerId


class BadWorker(BadValue):
    """A worker without an id, or without a slot."""


@dataclass(frozen=True)
class Worker:
    """A Spark executor: its host, how many tasks it runs at a time, and the fault zone it fails with.

    Workers that name no zone share the zone `""`.
    """

    id: WorkerId
    host: str = "localhost"
    slots: int = 1
    zone: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            raise BadWorker(f"a worker on host {self.host!r} has an empty id")
        if self.slots < 1:
            raise BadWorker(f"worker {self.id!r} has {self.slots} slots; it needs at least 1")

"""What the control API may take of the driver: few connections at a time, none of them for long."""

import asyncio
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol

from springtide.errors import BadValue


@dataclass(frozen=True)
class ApiLimits:
    """How much of the driver's descriptors, and how long, connections may take."""

    connections: int = 32
    """At a time; when one more comes, the oldest whose request is not complete is closed."""
    waiting: int = 16
    """The operating system's queue of connections that nobody has accepted yet; all of it is accepted at once."""
    request_s: float = 5.0
    """For a request to come, headers and body."""
    answer_s: float = 60.0
    """For a request to come and its answer to be made and taken. The client waits half as long."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise BadValue(f"{name}: expected more than 0, got {value}")

    @property
    def descriptors(self) -> int:
        """The most that connections hold at any moment: it takes a few turns until one too many is closed."""
        return self.connections + 4 * (self.waiting + 1)


class LimitedProtocol(H11Protocol):
    """Uvicorn's HTTP under limits, which it has not for half-sent requests and for answers that nobody takes.

    A connection is for one request: the server says so with each answer.
    """

    limits = ApiLimits()

    @classmethod
    def under(cls, limits: ApiLimits) -> type["LimitedProtocol"]:
        """The protocol under other limits."""
        return type("LimitedProtocol", (cls,), {"limits": limits})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._ends = (
            self.loop.call_later(self.limits.request_s, self._close_if_incomplete),
            self.loop.call_later(self.limits.answer_s, transport.abort),
        )
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for end in self._ends:
            end.cancel()
        super().connection_lost(exc)

    @property
    def _complete(self) -> bool:
        """Whether the whole request has come."""
        return self.cycle is not None and not self.cycle.more_body

    def _close_if_incomplete(self) -> None:
        if not self._complete:
            self.transport.abort()

    def _make_room(self) -> None:
        """One more than may be: who has waited longest for the rest of its request goes, else the newest."""
        open_ = [c for c in self.connections if isinstance(c, LimitedProtocol) and not c.transport.is_closing()]
        if len(open_) > self.limits.connections:
            min((c for c in open_ if not c._complete), key=lambda c: c._since).transport.abort()

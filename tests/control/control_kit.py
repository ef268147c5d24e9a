"""A fake app that records what was done to it, and requests with every header in the test's hand."""

import json
import socket
import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

from springtide.control.adapt.settings import Adapt
from springtide.control.api.protocol import USUAL, Options, Refused, Unknown
from springtide.control.api.server import ControlServer

TOTAL = 32
STEP = 16


@dataclass
class FakeControls:
    """Two workers; a migration moves `STEP` slices whenever somebody looks at it, and ends as `outcome`.

    It does not refuse a second migration by itself: that is for the API to prevent.
    """

    app: str = "clicks"
    outcome: str = "done"
    moves: bool = True
    effects: list[tuple[Any, ...]] = field(default_factory=list)
    current: dict[str, Any] | None = None
    overlapped: threading.Event = field(default_factory=threading.Event)
    linger_s: float = 0.0
    """How long a start waits for another one to come in beside it."""
    _inside: int = 0

    def status(self) -> dict[str, Any]:
        return {"app": self.app, "epoch": 7, "plan": 3}

    def workers(self) -> list[dict[str, Any]]:
        common = {"slots": 2, "replicas": 64, "resident_bytes": 1_500_000}
        return [
            {"id": "1", "host": "[red]one", "zone": "a", "state": "ready", "slices": 96, **common},
            {"id": "2", "host": "two", "zone": "b", "state": "draining", "slices": 32, **common},
        ]

    def plan(self) -> dict[str, Any]:
        counts = {"owners": {"1": "0-95", "2": "96-127"}, "replicas": {"2": "0-63"}}
        return {"version": 3, "workers": self.workers(), "operators": {"counts": counts}}

    def scale(self, workers: int, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        return self._start(strategy, "scale", workers, strategy, *_told(options))

    def move(self, operator: str, slices: str, to: str, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        if to not in ("1", "2"):
            raise Unknown(f"there is no worker {to!r}: the workers are 1, 2")
        return self._start(strategy, "move", operator, slices, to, strategy, *_told(options))

    def _start(self, strategy: str, *effect: Any) -> dict[str, Any]:
        self._inside += 1
        if self._inside > 1:
            self.overlapped.set()
        self.overlapped.wait(self.linger_s)
        self._inside -= 1
        self.effects.append(effect)
        self.current = {
            "id": len(self.effects),
            "strategy": strategy,
            "state": "starting",
            "done": 0,
            "total": TOTAL,
            "bytes": 0,
            "message": "",
        }
        return self.current

    def migration(self) -> dict[str, Any] | None:
        if self.current is not None and self.moves and self.current["state"] in ("starting", "moving"):
            done = self.current["done"] + STEP
            state = "moving" if done < TOTAL else self.outcome
            self.current = {**self.current, "done": done, "bytes": done * 1000, "state": state}
        return self.current

    def adapt(self, told: dict[str, Any]) -> dict[str, Any]:
        wanted = Adapt.from_json(told).to_json()
        self.effects.append(("adapt", wanted["policy"], wanted["minimum"], wanted["maximum"]))
        return wanted

    def rest(self) -> dict[str, Any]:
        raise Refused("'clicks' does not adapt by itself: there is nothing to stop")

    def metrics(self) -> bytes:
        return b"# HELP springtide_workers Workers.\n"

    def cancel(self) -> dict[str, Any]:
        if self.current is None:
            raise Refused("no migration is under way: there is nothing to cancel")
        self.effects.append(("cancel",))
        self.current = {**self.current, "state": "cancelled"}
        return self.current


@dataclass
class Served:
    """A fake app and its server."""

    server: ControlServer
    controls: FakeControls

    @property
    def port(self) -> int:
        assert self.server.address is not None
        return self.server.address.port

    @property
    def headers(self) -> dict[str, str]:
        """What a rightful program sends."""
        assert self.server.address is not None
        return {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.server.address.token}"}

    def ask(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str | None) -> Any:
        """Status and JSON of the answer; a header given as None is left out, and `raw` is a body as it is."""
        sent = self.headers | ({} if body is None and raw is None else {"Content-Type": "application/json"})
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc]
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if data is not None and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            text = response.read()
            is_json = text and response.headers["content-type"] == "application/json"
            return response.status, json.loads(text) if is_json else None
        finally:
            connection.close()

    def send(self, request: bytes) -> int:
        """The status of the answer to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(request)
            return int(connection.makefile("rb").readline().split()[1])


def _told(options: Options) -> tuple[Options, ...]:
    return () if options == USUAL else (options,)

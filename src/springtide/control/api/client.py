"""Asks a running app, from another process of the same machine."""

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from springtide.control.api.address import Address, NotRunning
from springtide.control.api.protocol import USUAL, Busy, Options, Refused, Unknown
from springtide.errors import SpringtideError

TIMEOUT_S = 30.0
REFUSALS: dict[int, type[Refused]] = {404: Unknown, 409: Busy}


class NoAnswer(SpringtideError):
    """The app is there, but what came back is no answer."""

    def __init__(self, app: str, reason: str) -> None:
        super().__init__(app, reason)
        self.app, self.reason = app, reason

    def __str__(self) -> str:
        return f"{self.app!r} gave no answer: {self.reason}. Try again, and look at what the app itself prints"


class ControlClient:
    """The controls of an app in another process; raises Refused with the app's own words."""

    def __init__(self, address: Address, directory: Path, timeout_s: float = TIMEOUT_S) -> None:
        self.app = address.app
        self.timeout_s = timeout_s
        self._address, self._directory = address, directory

    @classmethod
    def find(cls, directory: Path) -> "ControlClient":
        """The app that left its address in this directory; NotRunning if there is none."""
        return cls(Address.read(directory), directory)

    def status(self) -> dict[str, Any]:
        return self._ask_object("GET", "/v1/status")

    def workers(self) -> list[dict[str, Any]]:
        workers = self._ask("GET", "/v1/workers")
        if not isinstance(workers, list) or not all(isinstance(worker, dict) for worker in workers):
            raise NoAnswer(self.app, "expected a list of workers, got something else")
        return workers

    def plan(self) -> dict[str, Any]:
        return self._ask_object("GET", "/v1/plan")

    def scale(self, workers: int, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        wanted = {"workers": workers, "strategy": strategy, **_told(options)}
        if options.force:
            wanted["force"] = True
        return self._ask_object("POST", "/v1/scale", wanted)

    def move(self, operator: str, slices: str, to: str, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        wanted = {"operator": operator, "slices": slices, "to": to, "strategy": strategy, **_told(options)}
        return self._ask_object("POST", "/v1/move", wanted)

    def migration(self) -> dict[str, Any] | None:
        found = self._ask("GET", "/v1/migration")
        if found is not None and not isinstance(found, dict):
            raise NoAnswer(self.app, "expected a migration, got something else")
        return found

    def cancel(self) -> dict[str, Any]:
        return self._ask_object("POST", "/v1/cancel-migration", {})

    def adapt(self, told: dict[str, Any]) -> dict[str, Any]:
        return self._ask_object("POST", "/v1/adapt", told)

    def rest(self) -> dict[str, Any]:
        return self._ask_object("POST", "/v1/rest", {})

    def metrics(self) -> bytes:
        return self._exchange("GET", "/metrics", None)[1]

    def _ask_object(self, method: str, path: str, wanted: dict[str, Any] | None = None) -> dict[str, Any]:
        found = self._ask(method, path, wanted)
        if not isinstance(found, dict):
            raise NoAnswer(self.app, "expected a JSON object, got something else")
        return found

    def _ask(self, method: str, path: str, wanted: dict[str, Any] | None = None) -> Any:
        status, data = self._exchange(method, path, wanted)
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise NoAnswer(self.app, f"status {status} and something that is not JSON") from None
        if status == 200:
            return found
        message = found.get("error", "no reason given") if isinstance(found, dict) else "no reason given"
        if status >= 500:
            raise NoAnswer(self.app, str(message))
        raise REFUSALS.get(status, Refused)(message)

    def _exchange(self, method: str, path: str, wanted: dict[str, Any] | None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._address.token}"}
        if wanted is not None:
            headers["Content-Type"] = "application/json"
        body = None if wanted is None else json.dumps(wanted).encode()
        connection = HTTPConnection("127.0.0.1", self._address.port, timeout=self.timeout_s)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except ConnectionRefusedError as error:
            raise NotRunning(str(self._directory), f"nobody answers at {self._address.url} any more") from error
        except TimeoutError as error:
            raise NoAnswer(self.app, f"nothing came within {self.timeout_s:.0f} s") from error
        except (OSError, HTTPException) as error:
            raise NoAnswer(self.app, f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()


def _told(options: Options) -> dict[str, Any]:
    """What is said of how slices move, beside the strategy."""
    told: dict[str, Any] = {"hottest_first": True} if options.hottest_first else {}
    return told if options.slices_an_epoch is None else {**told, "slices_an_epoch": options.slices_an_epoch}

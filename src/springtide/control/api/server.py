"""Serves the control API from within the app's own process."""

import os
import secrets
import socket
import threading
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from springtide.confidential import remember
from springtide.control.api.address import Address
from springtide.control.api.auth import LOOPBACK
from springtide.control.api.limits import ApiLimits, LimitedProtocol
from springtide.control.api.protocol import Controls
from springtide.control.api.routes import make_api
from springtide.errors import SpringtideError
from springtide.waits import let_go

START_S = 10.0
STOP_S = 5.0
GRACE_S = 2
"""How long a request in flight may take when the server stops."""


class CannotServe(SpringtideError):
    """The control API could not be opened."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"can't open the control API on {LOOPBACK}: {self.reason}. {self.remedy}"


class ControlServer:
    """The control API on this machine's loopback, in a thread of its own.

    While it runs, `control.json` in `directory` tells its owner's programs the way. Port 0 is any free one.
    """

    def __init__(
        self, controls: Controls, directory: Path, port: int = 0, limits: ApiLimits = LimitedProtocol.limits
    ) -> None:
        self.controls, self.directory, self.port = controls, directory.absolute(), port
        self.limits = limits
        self.address: Address | None = None
        """Where it can be reached, while it runs."""
        self._changing = threading.Lock()
        self._serving: _Serving | None = None

    def start(self) -> None:
        """Accept requests when this returns; CannotServe if that is not possible."""
        with self._changing:
            if self._serving is not None:
                return
            listening = self._listen()
            port = listening.getsockname()[1]
            address = Address(f"http://{LOOPBACK}:{port}", secrets.token_urlsafe(32), os.getpid(), self.controls.app)
            remember(address.token)
            serving = _Serving(make_api(self.controls, address.token, port), listening, self.limits)
            try:
                serving.begin()
                self._publish(address)
            except BaseException:
                serving.end()
                raise
            self._serving, self.address = serving, address

    def stop(self) -> None:
        """Take the address away and accept no more requests."""
        with self._changing:
            if self._serving is None or self.address is None:
                return
            self.address.remove(self.directory)
            self._serving.end()
            self._serving = self.address = None

    def _listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((LOOPBACK, self.port))
        except (OSError, OverflowError) as error:
            listening.close()
            raise CannotServe(f"port {self.port}: {error}", "Choose another port, or 0 for any") from error
        return listening

    def _publish(self, address: Address) -> None:
        try:
            address.write(self.directory)
        except OSError as error:
            raise CannotServe(str(error), f"Make {self.directory} a directory that this user can write") from error


class _Serving(uvicorn.Server):
    """Uvicorn in a daemon thread: silent, and without signal handlers, which only a main thread may set."""

    def __init__(self, app: Starlette, listening: socket.socket, limits: ApiLimits) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=LimitedProtocol.under(limits),
                backlog=limits.waiting,
                headers=[("connection", "close")],
                loop="asyncio",
                ws="none",
                lifespan="off",
                proxy_headers=False,
                server_header=False,
                log_config=None,
                log_level="critical",
                access_log=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._listening = listening
        self._settled = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve_here, name="springtide-control", daemon=True)

    def begin(self) -> None:
        self._thread.start()
        if not self._settled.wait(START_S):
            raise CannotServe(f"the server did not come up within {START_S:.0f} s", "The machine may be overloaded")
        if self._failure is not None:
            raise CannotServe(f"{type(self._failure).__name__}: {self._failure}", "Start the app again")

    def end(self) -> None:
        self.should_exit = True
        if self._thread.is_alive():
            let_go(self._thread, STOP_S)
        self.force_exit = True
        self._listening.close()

    def _serve_here(self) -> None:
        try:
            self.run([self._listening])
        except BaseException as error:
            self._failure = error
        finally:
            self._settled.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._settled.set()

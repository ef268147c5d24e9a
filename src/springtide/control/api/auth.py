"""Who may ask: programs of this machine that hold the token, and no web page of another origin."""

import hmac
import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from springtide.confidential import hide_in
from springtide.errors import BadValue

LOOPBACK = "127.0.0.1"
SHORTEST_TOKEN = 22
"""Characters of base64: 132 bits."""

_PATH = re.compile(rb"(/[A-Za-z0-9_-]+)+/?|/")


def answer(content: object, status: int = 200, **headers: str) -> JSONResponse:
    """An answer that no cache keeps; raises ValueError or TypeError if JSON can't express it."""
    return JSONResponse(hide_in(content), status, {"cache-control": "no-store", **headers})


def refusal(status: int, message: str, **headers: str) -> JSONResponse:
    """An answer that says no."""
    return answer({"error": message}, status, **headers)


class Guard:
    """Passes on only what has the right Host, no foreign Origin, the token, and a plain path.

    A browser that was led here by a name which resolves to this machine sends that name as Host, and the
    page's address as Origin.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        if len(token) < SHORTEST_TOKEN:
            raise BadValue(f"a token of {len(token)} characters: use at least {SHORTEST_TOKEN} random ones")
        self.app = app
        self._token = token.encode()
        self._hosts = (f"{LOOPBACK}:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return refusal(403, f"wrong Host header: expected {' or '.join(self._hosts)}")
        if any(origin != f"http://{hosts[0]}" for origin in headers.getlist("origin")):
            return refusal(403, f"wrong Origin header: only http://{hosts[0]} itself may ask, or send no Origin")
        if not self._has_token(headers.getlist("authorization")):
            message = "no or wrong token: send 'Authorization: Bearer TOKEN' with the token of the app's control.json"
            return refusal(401, message, **{"www-authenticate": "Bearer"})
        if not _PATH.fullmatch(scope["raw_path"]):
            return refusal(400, "a path has only letters, digits, '_' and '-' between single slashes")
        if scope["query_string"]:
            return refusal(400, "there are no query parameters here: leave out what comes after '?'")
        return None

    def _has_token(self, given: list[str]) -> bool:
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(" ")
        # As bytes: the comparison refuses text that is not ASCII.
        return scheme.lower() == "bearer" and hmac.compare_digest(token.encode("latin-1"), self._token)

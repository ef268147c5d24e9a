"""The control API: a running app's controls over HTTP, as JSON."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from springtide.control.api.auth import Guard, answer, refusal
from springtide.control.api.prometheus import CONTENT_TYPE
from springtide.control.api.protocol import Busy, Controls, Refused, Unknown, under_way
from springtide.control.api.requests import CancelRequest, MoveRequest, ScaleRequest, fields
from springtide.logs import room_logger

log = room_logger(__name__)

MOST_BYTES = 64 * 1024
READ_ON_BYTES = 16 * MOST_BYTES
"""How much of an oversized body is read and dropped: closing at once could reset the connection before
the client has seen the answer."""

STATUS: dict[type[Refused], int] = {Unknown: 404, Busy: 409, Refused: 400}

Endpoint = Callable[[Request], Awaitable[Response]]


def make_api(controls: Controls, token: str, port: int) -> Starlette:
    """The API of one app, for whoever reaches it on this port with this token. GET changes nothing."""
    change = _Changes(controls)
    app = Starlette(
        routes=[
            Route("/v1/status", _reads(controls.status), methods=["GET"]),
            Route("/v1/workers", _reads(controls.workers), methods=["GET"]),
            Route("/v1/plan", _reads(controls.plan), methods=["GET"]),
            Route("/v1/migration", _reads(controls.migration), methods=["GET"]),
            Route("/v1/scale", change.scale, methods=["POST"]),
            Route("/v1/move", change.move, methods=["POST"]),
            Route("/v1/cancel-migration", change.cancel, methods=["POST"]),
            Route("/v1/adapt", change.adapt, methods=["POST"]),
            Route("/v1/rest", change.rest, methods=["POST"]),
            Route("/metrics", _metrics(controls), methods=["GET"]),
        ],
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers={Refused: _refused, HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return app


def _reads(question: Callable[[], Any]) -> Endpoint:
    async def read(_: Request) -> Response:
        return await _answer(question)

    return read


def _metrics(controls: Controls) -> Endpoint:
    async def read(_: Request) -> Response:
        try:
            return Response(await run_in_threadpool(controls.metrics), media_type=CONTENT_TYPE)
        except Exception as error:
            log.exception("a request failed")
            raise HTTPException(500, f"the app could not answer: {type(error).__name__}: {error}") from error

    return read


class _Changes:
    """Requests that change something: one after the other, and no migration beside another."""

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self._one_at_a_time = asyncio.Lock()

    async def scale(self, request: Request) -> Response:
        return await self._start(ScaleRequest.decode(await _body(request)))

    async def move(self, request: Request) -> Response:
        return await self._start(MoveRequest.decode(await _body(request)))

    async def cancel(self, request: Request) -> Response:
        wanted = CancelRequest.decode(await _body(request))
        async with self._one_at_a_time:
            return await _answer(lambda: wanted.apply(self._controls))

    async def adapt(self, request: Request) -> Response:
        told = fields(await _body(request), '{"policy": "ds2", "maximum": 8}')
        async with self._one_at_a_time:
            return await _answer(lambda: self._controls.adapt(told))

    async def rest(self, request: Request) -> Response:
        CancelRequest.decode(await _body(request))
        async with self._one_at_a_time:
            return await _answer(self._controls.rest)

    async def _start(self, wanted: ScaleRequest | MoveRequest) -> Response:
        async with self._one_at_a_time:
            return await _answer(lambda: self._start_alone(wanted))

    def _start_alone(self, wanted: ScaleRequest | MoveRequest) -> dict[str, Any]:
        current = self._controls.migration()
        if current is not None and under_way(current):
            raise Busy(
                f"migration {current['id']} is {current['state']}, and there is one at a time: "
                "wait until it has ended, or cancel it"
            )
        return wanted.apply(self._controls)


async def _answer(question: Callable[[], Any]) -> Response:
    """Ask the app, in a thread as it may take a moment; what it did not foresee becomes a 500."""
    try:
        return answer(await run_in_threadpool(question))
    except Refused:
        raise
    except Exception as error:
        log.exception("a request failed")
        raise HTTPException(500, f"the app could not answer: {type(error).__name__}: {error}") from error


async def _body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "none")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, f"the content type is {kind[:100]!r}: send JSON, as application/json")
    kept, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MOST_BYTES:
            kept += chunk
        elif size > READ_ON_BYTES:
            break
    if size > MOST_BYTES:
        raise HTTPException(413, f"the body is too large: at most {MOST_BYTES} bytes are taken")
    return bytes(kept)


def _refused(_: Request, error: Exception) -> Response:
    status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
    return refusal(status, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = error.detail
    if error.status_code == 404:
        message = f"there is no {request.url.path}"
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        message = f"{request.method} is not for {request.url.path}: use {allowed}"
    return refusal(error.status_code, message, **dict(error.headers or {}))

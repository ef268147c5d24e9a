"""Connections that send half a request and wait: the driver's descriptors and the owner's requests are safe."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from control_kit import FakeControls, Served
from waiting import wait_until

from springtide.control.api.client import ControlClient
from springtide.control.api.limits import ApiLimits
from springtide.control.api.server import ControlServer
from springtide.errors import BadValue

HALF_HEADERS = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: "
PATIENCE_S = 20.0
FOR_EVER_S = 3600.0


@contextmanager
def serving(directory: Path, limits: ApiLimits) -> Iterator[Served]:
    server = ControlServer(controls := FakeControls(), directory, limits=limits)
    server.start()
    try:
        yield Served(server, controls)
    finally:
        server.stop()


def half_body(served: Served) -> bytes:
    """A request with the token, and a body that never comes."""
    lines = [f"{name}: {value}" for name, value in served.headers.items()]
    head = ["POST /v1/scale HTTP/1.1", *lines, "Content-Type: application/json", "Content-Length: 100"]
    return "\r\n".join([*head, "", '{"workers"']).encode()


def connected(stack: ExitStack, served: Served, start: bytes) -> socket.socket:
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S))
    connection.sendall(start)
    return connection


def closed(connection: socket.socket) -> bool:
    """Whether the server has closed it, without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("what", ["headers", "body"])
def test_a_request_that_does_not_come_to_its_end_is_closed(what: str, tmp_path: Path) -> None:
    with serving(tmp_path, ApiLimits(request_s=0.2)) as served, ExitStack() as stack:
        start = HALF_HEADERS if what == "headers" else half_body(served)
        some = [connected(stack, served, start) for _ in range(8)]
        assert all(map(closed, some))
        assert served.ask("GET", "/v1/status")[0] == 200
        assert served.controls.effects == []


def test_a_byte_now_and_then_does_not_put_it_off(tmp_path: Path) -> None:
    with serving(tmp_path, ApiLimits(request_s=0.3)) as served, ExitStack() as stack:
        slow = connected(stack, served, HALF_HEADERS)

        def refused() -> bool:
            try:
                slow.sendall(b"x")
            except OSError:
                return True
            return False

        wait_until("the slow one is closed", refused, PATIENCE_S)


@pytest.mark.parametrize("what", ["headers", "body"])
def test_half_sent_requests_hold_few_descriptors_and_keep_nobody_out(what: str, tmp_path: Path) -> None:
    """However many come, and however long they may stay."""
    limits = ApiLimits(connections=8, waiting=8, request_s=FOR_EVER_S, answer_s=FOR_EVER_S)
    with serving(tmp_path, limits) as served, ExitStack() as stack:
        start = HALF_HEADERS if what == "headers" else half_body(served)
        before = descriptors()
        for sent in range(1, 81):
            connected(stack, served, start)
            assert descriptors() - before - sent <= limits.descriptors
        wait_until("all but a few are closed", lambda: descriptors() - before - 80 <= limits.connections, PATIENCE_S)
        assert ControlClient.find(tmp_path).status()["epoch"] == 7, "its owner's request is answered meanwhile"
        assert served.controls.effects == []


def test_an_answer_that_nobody_takes_is_dropped(tmp_path: Path) -> None:
    asked = threading.Event()

    class Talkative(FakeControls):
        def metrics(self) -> bytes:
            asked.set()
            return b"x" * (64 << 20)

    server = ControlServer(controls := Talkative(), tmp_path, limits=ApiLimits(answer_s=0.5))
    server.start()
    served = Served(server, controls)
    try:
        with ExitStack() as stack:
            before = descriptors()
            lines = "".join(f"{name}: {value}\r\n" for name, value in served.headers.items())
            connected(stack, served, f"GET /metrics HTTP/1.1\r\n{lines}\r\n".encode())
            assert asked.wait(PATIENCE_S)
            wait_until("it is closed", lambda: descriptors() <= before + 1, PATIENCE_S)
    finally:
        server.stop()


def test_an_answer_says_that_the_connection_ends(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as connection:
        lines = "".join(f"{name}: {value}\r\n" for name, value in served.headers.items())
        connection.sendall(f"GET /v1/status HTTP/1.1\r\n{lines}\r\n".encode())
        answer = connection.makefile("rb").read()
    assert b"connection: close" in answer.lower()
    assert answer.endswith(b"}")


@pytest.mark.parametrize("name", ["connections", "waiting", "request_s", "answer_s"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadValue, match=f"{name}: expected more than 0, got 0"):
        ApiLimits(**{name: 0})

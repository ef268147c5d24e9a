"""Who may ask, and what is no request at all: refused, and nothing has happened."""

from typing import Any

import pytest
from control_kit import Served

from springtide.control.api.auth import Guard

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
PATHS = (
    "/v1/status",
    "/v1/plan",
    "/v1/scale",
    "/v1/move",
    "/v1/cancel-migration",
    "/v1/adapt",
    "/v1/rest",
    "/metrics",
    "/",
    "/v1/nothing",
)
MOVE = {"operator": "counts", "slices": "3-9", "to": "2"}


def statuses(served: Served, **headers: str | None) -> set[int]:
    """What every method gets on every path, with a body that would scale."""
    return {served.ask(m, p, {"workers": 3}, **headers)[0] for m in METHODS for p in PATHS}


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1:{port}:80",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "localhost.:{port}",
        "LOCALHOST:{port}",
        "x@localhost:{port}",
    ],
)
def test_a_wrong_host(served: Served, host: str) -> None:
    assert statuses(served, Host=host.format(port=served.port)) == {403}
    assert served.controls.effects == []


@pytest.mark.parametrize(("version", "status"), [("1.0", 403), ("1.1", 400)])
def test_no_host(served: Served, version: str, status: int) -> None:
    """HTTP 1.1 itself asks for one."""
    lines = [
        f"Authorization: {served.headers['Authorization']}",
        "Content-Type: application/json",
        "Content-Length: 14",
    ]
    for method in METHODS:
        head = "\r\n".join([f"{method} /v1/scale HTTP/{version}", *lines, "", ""])
        assert served.send(head.encode() + b'{"workers": 3}') == status
    assert served.controls.effects == []


def test_two_hosts(served: Served) -> None:
    lines = [f"{name}: {value}" for name, value in served.headers.items()]
    request = "\r\n".join(["GET /v1/status HTTP/1.1", *lines, "Host: evil.example", "", ""])
    assert served.send(request.encode()) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}.evil.example",
        "file://",
    ],
)
def test_a_wrong_origin(served: Served, origin: str) -> None:
    assert statuses(served, Origin=origin.format(port=served.port)) == {403}
    assert served.controls.effects == []


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer  {token}",
        "Bearer {shorter}",
        "Bearer \xe9\xff",
    ],
)
def test_a_wrong_token(served: Served, authorization: str | None) -> None:
    token = served.headers["Authorization"].removeprefix("Bearer ")
    given = authorization and authorization.format(token=token, shorter=token[:-1])
    assert statuses(served, Authorization=given) == {401}
    assert served.controls.effects == []


def test_our_own_origin_both_names_and_any_case_of_the_scheme(served: Served) -> None:
    here = f"127.0.0.1:{served.port}"
    assert served.ask("GET", "/v1/status", Origin=f"http://{here}")[0] == 200
    there = f"localhost:{served.port}"
    assert served.ask("GET", "/v1/status", Host=there, Origin=f"http://{there}")[0] == 200
    assert served.ask("GET", "/v1/status", Authorization=served.headers["Authorization"].replace("B", "b", 1))[0] == 200


def test_a_refusal_says_what_to_send(served: Served) -> None:
    assert f"127.0.0.1:{served.port}" in served.ask("GET", "/v1/status", Host="evil.example")[1]["error"]
    assert "control.json" in served.ask("GET", "/v1/status", Authorization=None)[1]["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../v1/scale",
        "/../../etc/passwd",
        "/v1/%2e%2e/v1/scale",
        "/v1/scale%2f",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//v1/scale",
        "/v1//scale",
        "/v1/./scale",
        "/v1/scale;x",
        "/v1/sc%61le",
        "/v1\\scale",
        "/v1/scale%00",
        "v1/scale",
        "http://127.0.0.1/v1/scale",
        "file:///v1/scale",
        "/v1/scale?workers=3",
        "*",
        "/v1/sc\xe4le",
    ],
)
def test_an_odd_path(served: Served, path: str) -> None:
    lines = [f"{name}: {value}" for name, value in served.headers.items()]
    for method in ("GET", "POST"):
        head = [f"{method} {path} HTTP/1.1", *lines, "Content-Type: application/json", "Content-Length: 14", "", ""]
        assert served.send("\r\n".join(head).encode("latin-1") + b'{"workers": 3}') == 400
    assert served.controls.effects == []


@pytest.mark.parametrize(
    "odd",
    ["../x", "..", ".", "%2e%2e", "/etc/passwd", "a/b", "a\\b", "a b", "a\n", "", "é", "a" * 81, "a\0", 1, None, []],
)
def test_an_odd_id(served: Served, odd: Any) -> None:
    for name in ("operator", "to"):
        status, answer = served.ask("POST", "/v1/move", MOVE | {name: odd})
        assert status == 400
        assert repr(name) in answer["error"]
        assert "letters, digits" in answer["error"]
    assert served.controls.effects == []


def test_an_upgrade_to_a_web_socket_is_not_taken(served: Served) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    assert served.ask("GET", "/v1/status", Authorization=None, **upgrade)[0] == 401
    assert served.ask("GET", "/v1/scale", **upgrade)[0] == 405


def test_a_guard_takes_no_short_token() -> None:
    with pytest.raises(ValueError, match="a token of 8 characters: use at least 22"):
        Guard(None, "tooshort", 1)  # type: ignore[arg-type]

"""The server's life, its address, and the client that finds it."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from control_kit import FakeControls, Served

from springtide.control.api.address import FILE, Address, NotRunning, control_directory
from springtide.control.api.client import ControlClient, NoAnswer
from springtide.control.api.protocol import Busy, Controls, Refused, Unknown
from springtide.control.api.server import CannotServe, ControlServer


def serving_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "springtide-control"}


def test_the_address_is_for_its_owner_alone_and_goes_away(tmp_path: Path) -> None:
    server = ControlServer(FakeControls(), tmp_path / "deep" / "down")
    path = tmp_path / "deep" / "down" / FILE
    before = os.umask(0)
    try:
        server.start()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    fields = json.loads(path.read_bytes())
    assert set(fields) == {"url", "token", "pid", "app"}
    assert (fields["pid"], fields["app"]) == (os.getpid(), "clicks")
    assert len(fields["token"]) >= 43, "256 bits"
    server.stop()
    assert list(path.parent.iterdir()) == []


def test_start_and_stop_as_often_as_one_likes(tmp_path: Path) -> None:
    before = serving_threads()
    server = ControlServer(FakeControls(), tmp_path)
    server.stop()
    tokens = set()
    for _ in range(2):
        server.start()
        first = server.address
        server.start()
        assert server.address is not None
        assert server.address == first
        assert ControlClient.find(tmp_path).status()["epoch"] == 7
        tokens.add(server.address.token)
        server.stop()
        server.stop()
    assert len(tokens) == 2, "every start has its own token"
    assert serving_threads() == before


def test_another_apps_address_stays(tmp_path: Path) -> None:
    first, second = ControlServer(FakeControls(), tmp_path), ControlServer(FakeControls("other"), tmp_path)
    first.start()
    second.start()
    first.stop()
    assert ControlClient.find(tmp_path).app == "other"
    second.stop()
    assert not (tmp_path / FILE).exists()


def test_a_link_in_the_addresss_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    (tmp_path / FILE).symlink_to(target)
    server = ControlServer(FakeControls(), tmp_path)
    server.start()
    server.stop()
    assert target.read_text() == "untouched"


def test_signals_are_left_alone(tmp_path: Path) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    server = ControlServer(FakeControls(), tmp_path)
    server.start()
    try:
        assert {number: signal.getsignal(number) for number in before} == before
    finally:
        server.stop()
    assert {number: signal.getsignal(number) for number in before} == before


def test_only_loopback_listens(served: Served) -> None:
    with socket.socket() as elsewhere, pytest.raises(ConnectionRefusedError):
        elsewhere.connect(("127.0.0.2", served.port))


def test_a_port_of_ones_own_and_one_that_is_taken(tmp_path: Path) -> None:
    first = ControlServer(FakeControls(), tmp_path)
    first.start()
    assert first.address is not None
    port = first.address.port
    with pytest.raises(CannotServe, match=f"port {port}: .*Choose another port, or 0 for any"):
        ControlServer(FakeControls(), tmp_path / "other", port).start()
    assert not (tmp_path / "other").exists()
    first.stop()
    again = ControlServer(FakeControls(), tmp_path, port)
    again.start()
    assert again.address is not None
    assert again.address.port == port
    again.stop()


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    before = serving_threads()
    (tmp_path / "file").write_text("")
    server = ControlServer(FakeControls(), tmp_path / "file")
    with pytest.raises(CannotServe, match="a directory that this user can write"):
        server.start()
    assert server.address is None
    assert serving_threads() == before


def test_the_client_mirrors_the_controls(served: Served) -> None:
    client: Controls = ControlClient.find(served.server.directory)
    fake = served.controls
    assert (client.app, client.status(), client.workers(), client.plan()) == (
        fake.app,
        fake.status(),
        fake.workers(),
        fake.plan(),
    )
    assert client.migration() is None
    assert client.scale(3, "lazy")["state"] == "starting"
    assert client.cancel()["state"] == "cancelled"
    assert client.move("counts", "3-9", "2", "handover")["id"] == 3
    assert fake.effects == [("scale", 3, "lazy"), ("cancel",), ("move", "counts", "3-9", "2", "handover")]


def test_the_client_raises_the_servers_words(served: Served) -> None:
    client = ControlClient.find(served.server.directory)
    served.controls.moves = False
    with pytest.raises(Unknown, match="there is no worker '9': the workers are 1, 2"):
        client.move("counts", "3-9", "9", "lazy")
    with pytest.raises(Refused, match="choose one of handover, progressive") as refused:
        client.scale(3, "stop")
    assert type(refused.value) is Refused
    client.scale(3, "lazy")
    with pytest.raises(Busy, match="migration 1 is starting"):
        client.scale(3, "lazy")


class Troubled(FakeControls):
    """Has a status that JSON can't express, and takes long to tell its plan."""

    let_go = threading.Event()

    def status(self) -> dict[str, Any]:
        return {"rate": float("nan")}

    def plan(self) -> dict[str, Any]:
        return {"late": self.let_go.wait(20)}


def test_the_client_says_when_the_app_fails_or_hangs(tmp_path: Path) -> None:
    server = ControlServer(Troubled(), tmp_path)
    server.start()
    assert server.address is not None
    try:
        with pytest.raises(NoAnswer, match="'clicks' gave no answer: the app could not answer: ValueError"):
            ControlClient.find(tmp_path).status()
        with pytest.raises(NoAnswer, match="nothing came within"):
            ControlClient(server.address, tmp_path, timeout_s=0.2).plan()
        assert len(ControlClient.find(tmp_path).workers()) == 2, "others are served meanwhile"
    finally:
        Troubled.let_go.set()
        server.stop()


def test_no_app_and_an_app_that_has_ended(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match=r"there is no control.json in it. Start the app, or say with --checkpoint"):
        ControlClient.find(tmp_path / "nowhere")
    server = ControlServer(FakeControls(), tmp_path)
    server.start()
    client = ControlClient.find(tmp_path)
    server.stop()
    with pytest.raises(NotRunning, match=r"nobody answers at http://127\.0\.0\.1:"):
        client.status()


def test_the_address_of_a_process_that_was_killed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(60)
    Address("http://127.0.0.1:9", "t" * 43, dead.pid, "clicks").write(tmp_path)
    with pytest.raises(NotRunning, match=f"process {dead.pid} of its control.json is not alive"):
        ControlClient.find(tmp_path)


GOOD: dict[str, Any] = {"url": "http://127.0.0.1:9", "token": "t" * 43, "pid": os.getpid(), "app": "clicks"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({"url": GOOD["url"]}),
        json.dumps(GOOD | {"more": 1}),
        *(
            json.dumps(GOOD | bad)
            for bad in (
                {"url": "http://evil.example:9"},
                {"url": "http://127.0.0.1:9@evil.example"},
                {"url": "http://127.0.0.1:99999"},
                {"url": "file:///etc/passwd"},
                {"token": "short"},
                {"token": "a\r\nX: y" + "t" * 43},
                {"pid": 0},
                {"pid": -1},
                {"pid": True},
                {"pid": 2**70},
                {"pid": "1"},
                {"app": "../x"},
            )
        ),
    ],
    ids=lambda content: content.replace(str(os.getpid()), "PID")[:60],
)
def test_a_damaged_address(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(NotRunning, match=r"its control.json is damaged"):
        ControlClient.find(tmp_path)


def test_where_an_app_leaves_its_address() -> None:
    assert control_directory("some/where", "usual") == Path("some/where")
    assert control_directory("~/x", "usual") == Path.home() / "x"
    assert control_directory("file:///some/where", "usual") == Path("/some/where")
    assert control_directory("s3://bucket/x", "usual") == Path("usual")

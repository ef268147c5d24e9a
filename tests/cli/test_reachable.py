"""Who can reach a running app: nobody from elsewhere, and on this machine only who has its secrets."""

import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from app_process import APP, AppProcess
from process_tree import Listener, command_line, environment, listeners, tree
from waiting import wait_until

from springtide.control.api.client import ControlClient

pytestmark = pytest.mark.spark
PATIENCE_S = 120.0
SECRET = "_SPARK_AUTH_SECRET"
PAGE = ["--conf", "spark.ui.enabled=true"]
"""A page that somebody asks for is for this machine, too."""
CHECKPOINT = Path(".springtide", "tide")


def started(app: AppProcess) -> None:
    def published() -> bool:
        assert app.process.poll() is None, app.said
        return any((app.directory / "out").rglob("*.parquet"))

    wait_until("an epoch is published", published, PATIENCE_S, lambda: app.said)


def outside(found: list[Listener]) -> list[str]:
    """Ports that other machines could reach."""
    return [f"{one.address}:{one.port} of {command_line(one.pid)[:80]}" for one in found if not one.loopback]


def executors(pids: list[int]) -> list[int]:
    return [pid for pid in pids if "CoarseGrainedExecutorBackend" in command_line(pid)]


def answered(port: int, endpoint: str, *secrets: str) -> list[bool]:
    """Whether an endpoint of Spark's answers who knows each of these secrets; an empty one is none at all."""
    probe = [sys.executable, str(Path(__file__).with_name("spark_probe.py")), str(port), endpoint]
    lines = "".join(f"{secret}\n" for secret in secrets)
    said = subprocess.run(probe, input=lines, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [line == "True" for line in said.stdout.splitlines()]


def refuses_callbacks(port: int) -> bool:
    """Whether the connection is closed on who calls without a token; others would be told that there is no object x."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"c\nx\ncall\ne\n")
        try:
            return b"unknown" not in connection.makefile("rb").read()
        except ConnectionResetError:
            return True


def readable_by_others(directory: Path) -> list[Path]:
    """What is directly in a directory and lets others in."""
    modes = {path: path.stat().st_mode for path in directory.iterdir()}
    return [path for path, mode in modes.items() if stat.S_ISDIR(mode) and stat.S_IMODE(mode) & 0o077]


@pytest.mark.parametrize("workers", [pytest.param(2, marks=pytest.mark.slow), None], ids=["workers", "embedded"])
def test_only_this_machine_and_only_with_the_secret(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (tmp_path / "app.py").write_text(APP.format(rate=500, limit=1_000_000))
    with AppProcess(tmp_path, *(["--workers", str(workers)] if workers else PAGE)) as app:
        started(app)
        pids = tree(app.process.pid)
        found = listeners(pids)
        assert outside(found) == []
        (jvm,) = [pid for pid in pids if "SparkSubmit" in command_line(pid)]
        own = [one.port for one in found if one.pid == app.process.pid]
        if workers is None:
            assert all(map(refuses_callbacks, own))
            assert len([one for one in found if one.pid == jvm]) == 4, "the gateway, the driver, its blocks, the page"
        else:
            client = ControlClient.find(tmp_path / CHECKPOINT)
            api = client._address.port
            assert len(own) == 2, "the control API and the way back from Spark"
            assert refuses_callbacks(next(port for port in own if port != api))
            # The gateway, the driver and its blocks, the master, and the machines: no pages.
            assert len([one for one in found if one.pid == jvm]) == 4 + workers
            (secret,) = {environment(pid)[SECRET] for pid in executors(pids)}
            assert not [pid for pid in pids if secret in command_line(pid)]
            url = re.search(r"spark://(\w+)@127\.0\.0\.1:(\d+)", command_line(executors(pids)[0]))
            assert url is not None
            assert answered(int(url[2]), url[1], secret, "", "another") == [True, False, False]
            client.scale(workers + 1, "lazy")
            wait_until("one more worker", lambda: len(executors(tree(app.process.pid))) > workers, PATIENCE_S)
            found = listeners(tree(app.process.pid))
            assert outside(found) == []
            assert len([one for one in found if one.pid == jvm]) == 4 + workers + 1
        assert readable_by_others(temporary) == []
        assert not (tmp_path / CHECKPOINT).stat().st_mode & 0o077
        assert not [pid for pid in tree(app.process.pid) if "authenticate.secret" in command_line(pid)]

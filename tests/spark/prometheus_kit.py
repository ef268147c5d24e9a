"""A Prometheus to throw away: on loopback, in a temporary directory, gone when the test is."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from waiting import wait_until

from springtide.control.api.address import Address

START_S = 60.0
OWN = Path(__file__).parents[2] / ".prometheus" / "usr" / "bin"
"""Where `make prometheus` puts it if there is no other."""
CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
  - job_name: springtide
    authorization: {{credentials_file: {token}}}
    static_configs: [targets: ["127.0.0.1:{port}"]]
"""


def programs() -> Path:
    """Where prometheus and promtool are; the test is skipped if they are nowhere."""
    found = shutil.which("prometheus")
    for place in ([] if found is None else [Path(found).parent]) + [Path("/usr/local/bin"), Path("/usr/bin"), OWN]:
        if all(os.access(place / name, os.X_OK) for name in ("prometheus", "promtool")):
            return place
    pytest.skip("there is no prometheus and promtool on PATH, and `make prometheus` has not fetched them")


@dataclass(frozen=True)
class Prometheus:
    """A server that scrapes one app."""

    port: int
    log: Path

    def ask(self, query: str) -> dict[str, float]:
        """By the labels that Prometheus did not add, in one text: the values now."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?{urlencode({'query': query})}"
        with urlopen(url, timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        own = ("__name__", "instance", "job")
        return {
            " ".join(f"{name}={value}" for name, value in sorted(one["metric"].items()) if name not in own): float(
                one["value"][1]
            )
            for one in found
        }

    def answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def prometheus(app: Address, directory: Path) -> Iterator[Prometheus]:
    """A running server, which knows the way to the app and its token."""
    token, config, log = directory / "token", directory / "prometheus.yml", directory / "prometheus.log"
    directory.mkdir()
    token.write_text(app.token)
    token.chmod(0o600)
    config.write_text(CONFIG.format(token=token, port=app.port))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(programs() / "prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with open(log, "wb") as out, subprocess.Popen(command, cwd=directory, stdout=out, stderr=out) as process:
        server = Prometheus(port, log)
        try:
            wait_until("Prometheus", server.answers, START_S, log.read_text)
            yield server
        finally:
            process.terminate()


def check_metrics(text: bytes) -> str:
    """What promtool has to say against metrics; nothing if they are as they should be."""
    done = subprocess.run(
        [programs() / "promtool", "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    return (done.stdout + done.stderr).decode() if done.returncode or done.stdout or done.stderr else ""

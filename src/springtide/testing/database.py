"""A PostgreSQL server to throw away: in a temporary directory, on a loopback port, gone when the test is."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from springtide.errors import SpringtideError

USER = "springtide"
START_S = 60.0
QUICK = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "40"}
"""Nothing of it is to outlive the machine."""


class NoServer(SpringtideError):
    """PostgreSQL is not installed, or does not start."""


class Server:
    """A server with one database; `dsn` is how to get in, with a password."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = _free_port()
        self.password = secrets.token_hex(8)
        self._programs = programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()
        if self._account:
            os.chown(directory, self._account["user"], self._account["group"])
        secret = directory / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)  # The directory is its owner's alone.
        self._run(
            "initdb",
            "--pgdata",
            "data",
            "--username",
            USER,
            "--pwfile",
            str(secret),
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
        )

    @property
    def dsn(self) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it lets somebody in."""
        settings = QUICK | {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.directory)}
        command = [str(self._programs / "postgres"), "-D", "data", "-p", str(self.port)]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.directory / "server.log", "ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, cwd=self.directory, stdout=log, stderr=log, start_new_session=True, **self._account
            )
        self._process = process
        deadline = time.monotonic() + START_S
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        while subprocess.run(ready, check=False).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"the server did not start:\n{(self.directory / 'server.log').read_text()}")
            time.sleep(0.05)

    def stop(self, *, crash: bool = False) -> None:
        """Stop it; its data stay, and it can be started again. A crash leaves the rest to its recovery."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            self._process.wait()
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            **self._account,
        )
        if done.returncode != 0:
            raise NoServer(f"{program} failed: {done.stderr.strip()}")


@contextmanager
def postgres() -> Iterator[Server]:
    """A running server. Needs PostgreSQL installed: `initdb` and `postgres`, in the usual places or on PATH."""
    # Not below a directory of pytest's: those are closed to the account that the server runs under.
    directory = Path(tempfile.mkdtemp(prefix="springtide-postgres-"))
    server = None
    try:
        server = Server(directory)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def programs() -> Path:
    """Where the server's programs are; NoServer if they are nowhere."""
    places: list[str] = []
    if (config := shutil.which("pg_config")) is not None:
        places.append(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip())
    newest_first = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
    places += [*newest_first, "/usr/local/pgsql/bin", *os.environ.get("PATH", "").split(os.pathsep)]
    for place in places:
        if place and all(os.access(Path(place, name), os.X_OK) for name in ("initdb", "postgres", "pg_isready")):
            return Path(place)
    raise NoServer(
        "expected PostgreSQL's initdb, postgres and pg_isready in the usual places or on PATH, got none: install "
        "PostgreSQL 13 or newer (Debian, Ubuntu: apt install postgresql)"
    )


def _account() -> dict[str, Any]:
    """Whom to run the server as: PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServer("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""A real Kafka broker on this machine: one node that is its own controller, on loopback, with its data in a directory.

>>> from springtide.testing.kafka import Broker
>>> with Broker() as broker:  # doctest: +SKIP
...     sources.kafka(broker.servers, "clicks", schema="user STRING")
"""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from springtide.connectors.kafka.jars import present
from springtide.errors import SpringtideError
from springtide.java_home import find_java
from springtide.private import make_private

START_S = 60.0
STOP_S = 20.0
POLL_S = 0.05
CLUSTER_ID = "c3ByaW5ndGlkZS10ZXN0cw"
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""For a broker that shares a machine with what it is tested with."""


class BrokerFailed(SpringtideError, RuntimeError):
    """A broker did not start."""


class Broker:
    """A broker that can be started, stopped, killed and started again on the same ports and data."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self._scratch = None if directory is not None else tempfile.mkdtemp(prefix="springtide-kafka-")
        self.directory = Path(directory or self._scratch or "")
        self.port, self._controller_port = _free_ports()
        self._jars = ":".join(map(str, present("broker")))
        self._java = str(find_java() / "bin" / "java")
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """Its address, as clients want it."""
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> "Broker":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> "Broker":
        """Start it and wait until it answers."""
        from springtide.testing.topics import answers

        if self.running:
            return self
        make_private(self.directory)
        settings = self.directory / "server.properties"
        settings.write_text("\n".join(f"{key}={value}" for key, value in self._settings().items()))
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(settings)
        with open(self.directory / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [self._java, *JAVA_OPTIONS, "-cp", self._jars, "kafka.Kafka", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = _guard(self._process.pid)
        deadline = time.monotonic() + START_S
        while not answers(self.servers, within_s=1.0):
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(f"the broker did not start; its log ends with:\n{self.said()}")
            time.sleep(POLL_S)
        return self

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it, and forget its data unless they are in a directory of the caller's."""
        self.kill()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def said(self) -> str:
        """The end of its log."""
        log = self.directory / "broker.log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _format(self, settings: Path) -> None:
        done = subprocess.run(
            [
                self._java,
                *JAVA_OPTIONS,
                "-cp",
                self._jars,
                "kafka.tools.StorageTool",
                "format",
                "-t",
                CLUSTER_ID,
                "-c",
                str(settings),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_S,
        )
        if done.returncode != 0:
            raise BrokerFailed(f"the broker's directory could not be made ready: {done.stdout}{done.stderr}")

    def _settings(self) -> dict[str, str | int]:
        here, controller = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{here},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{here}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            # A topic that is not there is an error, as in most clusters that people run.
            "auto.create.topics.enable": "false",
            # There is one node: nothing can have a second copy.
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # Quick to be back after a crash, and quick to go.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "controlled.shutdown.enable": "false",
            "log.cleaner.dedupe.buffer.size": 8 << 20,
        }


def _guard(pid: int) -> "subprocess.Popen[bytes]":
    """A process that ends the broker once this one is gone, however it goes: its input then comes to an end."""
    wait = ["sh", "-c", 'read _; kill -9 "$0"', str(pid)]
    return subprocess.Popen(wait, stdin=subprocess.PIPE, start_new_session=True)


def _free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on now; held together, so that they differ."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]

"""A standalone Spark cluster on 127.0.0.1, of daemons from the pip package, and the chaos app on it."""

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from chaos_app import FAST_START
from cluster_kit import Cluster
from processes import Process, process
from waiting import wait_until

from springtide.java_home import find_java

HOST = "127.0.0.1"
START_S = 120.0
STOP_S = 30.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
URL = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = "Successfully registered with master"
APPS_OWN = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
"""Left out of the daemons' environment: an app must bring these itself."""


class Standalone:
    """A master and some worker daemons, each with room for one executor; used as a context.

    Spark takes addresses of this machine for hosts of their own: with several, daemons are given them in turn.
    """

    def __init__(self, root: Path, *, daemons: int, hosts: Sequence[str] = (HOST,)) -> None:
        self.root, self.daemons, self.hosts = root, daemons, hosts
        self.master = ""
        self.java = find_java()
        self._started: list[subprocess.Popen[bytes]] = []
        self._workers: list[Process] = []

    def __enter__(self) -> "Standalone":
        try:
            log = self._start("master", MASTER, HOST, "--port", "0")
            self.master = wait_until("a master", lambda: _find(URL, log), START_S, lambda: _text(log))
            logs = [
                self._start(
                    f"worker-{n}",
                    WORKER,
                    self.hosts[n % len(self.hosts)],
                    "--cores",
                    "3",
                    "--memory",
                    "1g",
                    "--work-dir",
                    str(self.root / f"work-{n}"),
                    self.master,
                )
                for n in range(self.daemons)
            ]
            self._workers = [one for popen in self._started[1:] for one in process(popen.pid)]
            wait_until("worker daemons", lambda: all(REGISTERED in _text(log) for log in logs), START_S)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self, name: str, daemon: str, host: str, *arguments: str) -> Path:
        self.root.mkdir(parents=True, exist_ok=True)
        home = Path(pyspark.__file__).parent
        environment = {key: value for key, value in os.environ.items() if key not in APPS_OWN} | {
            "JAVA_HOME": str(self.java),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": FAST_START,
        }
        command = [str(home / "bin" / "spark-class"), daemon, "--host", host, "--webui-port", "0", *arguments]
        log = self.root / f"{name}.log"
        with open(log, "wb") as file:
            self._started.append(subprocess.Popen(command, env=environment, cwd=self.root, stdout=file, stderr=file))
        return log

    def _stop(self) -> None:
        """Leave no process of these daemons behind."""
        family = [one for popen in self._started for top in process(popen.pid) for one in top.family()]
        for popen in reversed(self._started):
            popen.terminate()
        try:
            for popen in self._started:
                popen.wait(STOP_S)
        finally:
            for one in family:
                one.signal(signal.SIGKILL)
            for popen in self._started:
                popen.wait()

    def executors(self) -> dict[str, Process]:
        """The executors that run now, by worker."""
        return {worker: one for daemon in self._workers for worker, one in daemon.executors().items()}

    def lose_daemon_of(self, worker: str) -> None:
        """End the daemon that has an executor, and all that runs under it, as if its machine were gone."""
        (daemon,) = (one for one in self._workers if worker in one.executors())
        for one in daemon.family():
            one.signal(signal.SIGKILL)

    def shares(self) -> list[int]:
        """How many executors each daemon has, the most first."""
        return sorted((len(daemon.executors()) for daemon in self._workers), reverse=True)


class OnStandalone(Cluster):
    """The chaos app, with its executors under daemons that are not the driver's own."""

    def __init__(self, spark: Standalone, root: Path, **options: Any) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.spark = spark
        super().__init__(root, master=spark.master, **options)

    def executor(self, worker: str) -> Process:
        return self.spark.executors()[worker]


def _text(log: Path) -> str:
    return log.read_text(errors="replace")


def _find(pattern: re.Pattern[str], log: Path) -> str:
    found = pattern.search(_text(log))
    return found[1] if found else ""

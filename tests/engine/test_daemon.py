"""The daemon that forks Python workers has loaded all that they need, and no thread that a fork would break."""

import os
import socket
import struct
import subprocess
import sys

import pytest
from waiting import wait_until

LOOK = """
import sys, threading
from pathlib import Path
import springtide.engine.worker.daemon
assert threading.active_count() == 1, threading.enumerate()
assert {"pyarrow", "numpy", "pyspark.worker", "springtide.state.update"} <= set(sys.modules)
own, *others = sorted(Path("/proc/self/task").iterdir(), key=lambda task: int(task.name))
print(*((task / "comm").read_text().strip() for task in others))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of a process are looked up in /proc")
def test_only_a_thread_that_a_fork_can_do_without() -> None:
    """The one of Arrow's allocator is no harm: jemalloc goes on without it in the child."""
    told = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(told.stdout.split()) <= {"jemalloc_bg_thd"}


def test_a_worker_whose_spark_has_ended_says_nothing() -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-m", "springtide.engine.worker.daemon"],
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "secret", "SPARK_REUSE_WORKER": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert daemon.stdout is not None
    port = struct.unpack("!i", daemon.stdout.read(4))[0]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as spark:
        worker = struct.unpack("!i", spark.recv(4, socket.MSG_WAITALL))[0]
        spark.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # Ends as if killed.
    wait_until("the worker to end", lambda: not _alive(worker), 60.0)
    _, said = daemon.communicate(timeout=60)
    assert said.decode() == ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

"""The daemon that forks Python workers has loaded all that they need, and no thread that a fork would break."""

import os
import subprocess
import sys

import pytest

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
        [sys.executable, "-c", LOOK], env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert set(told.stdout.split()) <= {"jemalloc_bg_thd"}

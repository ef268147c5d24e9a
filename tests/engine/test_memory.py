"""What a worker's process does with memory that it has freed."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from springtide.engine.worker.memory import keep_freed_memory
assert keep_freed_memory()
def work():
    for _ in range(20):
        some = [np.full(1_000_000, 1.0) for _ in range(4)]
        del some
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory as it likes")
def test_freed_memory_is_kept_for_what_comes_next() -> None:
    """By the pages that the system had to give anew, in the second of two equal rounds of work on 150 000 pages."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 10_000

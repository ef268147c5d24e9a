"""Keeps the JVM's own start-up warning off the terminal.

The JVM that Spark starts inherits this process's stderr and writes one line there before any of Spark's
code runs, so no setting of Spark's can prevent it. Everything else that it writes is passed on.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

NOISE = (b"WARNING: Using incubator modules: ",)
STDERR = 2


@contextmanager
def without_jvm_warnings() -> Iterator[None]:
    """Processes started inside write their stderr through a filter, as long as they live."""
    sys.stderr.flush()
    reader, writer = os.pipe()
    real = os.dup(STDERR)
    os.dup2(writer, STDERR)
    os.close(writer)
    filtering = threading.Thread(
        target=_pass_on, args=(os.fdopen(reader, "rb"), os.fdopen(os.dup(real), "wb", 0)), daemon=True
    )
    filtering.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(real, STDERR)
        os.close(real)


def _pass_on(lines: IO[bytes], real: IO[bytes]) -> None:
    for line in lines:
        if line.startswith(NOISE):
            continue
        if sys.stderr is sys.__stderr__:
            real.write(line)
        else:  # A live view owns the terminal: it prints the line above itself.
            sys.stderr.write(line.decode(errors="replace"))

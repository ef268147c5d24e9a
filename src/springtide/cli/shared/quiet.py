"""Keeps noise that no setting of Spark's can prevent off the terminal.

The JVM that Spark starts inherits this process's stderr and writes a warning there before any of Spark's
code runs. When it stops, its thread pools may be closed before their last message, and threads find what
they need gone: each leaves a stack.
And a Python process of Spark's, whose JVM has ended or which is let go after an idle minute, leaves a
traceback of its broken pipe. Everything else is passed on.
"""

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from springtide.confidential import hide

NOISE = (b"WARNING: Using incubator modules: ",)
TRACEBACK = b"Traceback (most recent call last):"
ANOTHER = b"During handling of the above exception, another exception occurred:"
LOST = (b"BrokenPipeError", b"ConnectionResetError", b"EOFError")
"""How a traceback ends in a process whose other end is gone."""
UNCAUGHT = b"Exception in thread "
ENDING = (b"RejectedExecutionException", b"RpcEnvStoppedException", b"Shutdown in progress", b"stopped SparkContext")
"""What a thread of Spark's says that goes on while Spark ends."""
JAVA_STACK = (b"\tat ", b"\t... ", b"Caused by: ")
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
    for line in worth_reading(lines):
        text = hide(line.decode(errors="replace"))
        if sys.stderr is sys.__stderr__:
            real.write(text.encode(errors="replace"))
        else:  # A live view owns the terminal: it prints the line above itself.
            sys.stderr.write(text)


def worth_reading(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without the noise."""
    return (line for line in _without_stacks(_without_tracebacks(lines)) if not line.startswith(NOISE))


def _without_stacks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Without Java's stacks of a Spark that ends; one is held back until all of it is there."""
    held: list[bytes] = []
    for line in lines:
        if held and line.startswith(JAVA_STACK):
            held.append(line)
            continue
        yield from _unless_ending(held)
        held = [line] if line.startswith(UNCAUGHT) or any(each in line for each in ENDING) else []
        if not held:
            yield line
    yield from _unless_ending(held)


def _unless_ending(stack: list[bytes]) -> list[bytes]:
    return [] if any(each in line for line in stack for each in ENDING) else stack


def _without_tracebacks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Without those of Spark's own Python that has lost its JVM; one is held back until its last line tells."""
    held: list[bytes] = []
    between: list[bytes] | None = None
    """What came since a traceback that was noise: what leads over to another one is noise as well."""
    for line in lines:
        if held or line.startswith(TRACEBACK):
            held, between = [*held, line], None
            if line.startswith((b" ", TRACEBACK)):
                continue
            if line.startswith(LOST) and _of_spark(held):
                between = []
            else:
                yield from held
            held = []
        elif between is not None and (not line.strip() or line.startswith(ANOTHER)):
            between.append(line)
        else:
            yield from between or ()
            between = None
            yield line
    if not _of_spark(held):  # Else it was cut short, as the JVM ended.
        yield from held


def _of_spark(traceback: Iterable[bytes]) -> bool:
    """Whether all frames, as far as they are there, are of Spark's own Python and of what comes with Python."""
    frames = [line for line in traceback if line.startswith(b"  File ")]
    return all(b"/pyspark/" in frame or _comes_with_python(frame) for frame in frames)


def _comes_with_python(frame: bytes) -> bool:
    return b'"<frozen ' in frame or (b"/lib/python3." in frame and b"-packages/" not in frame)

"""Temporary directories that go when their owner lets them go, and when the process ends, even in a hurry."""

import atexit
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_made: set[Path] = set()
_turn = threading.Lock()


def make_scratch(prefix: str, within: Path | None = None) -> Path:
    """A new, empty temporary directory for its owner alone; `springtide-` comes before its prefix."""
    path = Path(tempfile.mkdtemp(prefix=f"springtide-{prefix}-", dir=within))
    with _turn:
        _made.add(path)
    return path


def remove_scratch(path: Path) -> None:
    """Remove a directory that `make_scratch` made, with all that is in it."""
    shutil.rmtree(path, ignore_errors=True)
    with _turn:
        _made.discard(path)


@contextmanager
def scratch(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """A temporary directory for as long as the block runs."""
    path = make_scratch(prefix, within)
    try:
        yield path
    finally:
        remove_scratch(path)


@atexit.register
def remove_all_scratch() -> None:
    """Remove every directory that is left; for a process that is about to end."""
    for path in list(_made):  # Without the lock: a signal may have come while its holder was at work.
        shutil.rmtree(path, ignore_errors=True)

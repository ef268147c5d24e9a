"""Small files that only their owner can read, and the process that wrote one."""

import os
import secrets
from pathlib import Path

from springtide.private import make_private


def write_owner_file(path: Path, data: bytes) -> None:
    """Put a file in place, whole; nobody but its owner can read it at any moment."""
    make_private(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_owner_file(path: Path, data: bytes) -> None:
    """Take a file away, unless another process has put its own there."""
    try:
        if path.read_bytes() == data:
            path.unlink()
    except OSError:
        return  # It is gone, or its directory is: either way nobody finds it any more.


def process_lives(pid: int) -> bool:
    """Whether a process of this machine is alive, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""A file system of its own with little room, so that a full disk is a full disk."""

import errno
import subprocess
from pathlib import Path
from types import TracebackType

import pytest

PAGE = 4096


class SmallDisk:
    """Mounted at a directory as long as the block lasts. Skips the test where this process may not mount."""

    def __init__(self, at: Path, size_bytes: int) -> None:
        self.at, self.size_bytes = at, size_bytes
        self._ballast = at / ".ballast"

    def __enter__(self) -> "SmallDisk":
        self.at.mkdir(parents=True, exist_ok=True)
        done = _call("mount", "-t", "tmpfs", "-o", f"size={self.size_bytes},mode=700", "springtide-test", str(self.at))
        if done.returncode:
            pytest.skip(f"a small disk needs the right to mount: run as root, or in `unshare -rm` ({done.stderr})")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        done = _call("umount", "--lazy", str(self.at))
        assert not done.returncode, done.stderr

    def fill(self) -> None:
        """Take what room there is, to the last page."""
        with open(self._ballast, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(PAGE))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def clear(self) -> None:
        """Free what `fill` has taken."""
        self._ballast.unlink()

    def grow(self, size_bytes: int) -> None:
        """Exchange it for a larger one, with all that is on it."""
        done = _call("mount", "-o", f"remount,size={size_bytes}", str(self.at))
        assert not done.returncode, done.stderr


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)

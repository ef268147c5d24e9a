"""What this process may use of its machine: the machine's own memory and cores, or less by a container's limits."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

UNLIMITED = 1 << 60
"""Version 1 of control groups writes a number as large as this for no limit."""


def memory_bytes(root: Path = Path("/")) -> int | None:
    """The memory that there is, or the least limit that a control group sets; None if neither can be read."""
    limits = [_machine_memory(root)]
    limits += [_whole(path / "memory.max") for path in _groups(root, "")]
    limits += [_whole(path / "memory.limit_in_bytes") for path in _groups(root, "memory")]
    known = [limit for limit in limits if limit is not None and limit < UNLIMITED]
    return min(known, default=None)


def cores(root: Path = Path("/"), allowed: Callable[[], int] | None = None) -> float:
    """The cores that this process may run on, or the least share of them that a control group grants."""
    limits = [float((allowed or _allowed)())]
    for path in _groups(root, ""):
        quota, _, period = (_read(path / "cpu.max") or "max").partition(" ")
        limits += [int(quota) / int(period)] if quota.isdigit() and period.isdigit() else []
    for path in _groups(root, "cpu"):
        runs, every = _whole(path / "cpu.cfs_quota_us"), _whole(path / "cpu.cfs_period_us")
        limits += [runs / every] if runs and every else []
    return min(limits)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of this process's control group and of those above it; of version 2 without a controller.

    In a container the mount often begins at the group itself: then the path that the kernel tells does not exist there.
    """
    mount = root / "sys" / "fs" / "cgroup" / controller
    yield mount
    for line in (_read(root / "proc" / "self" / "cgroup") or "").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if (controller in names.split(",")) if controller else not names:
            relative = PurePosixPath(path.lstrip("/"))
            yield from (mount / above for above in (relative, *relative.parents))


def _machine_memory(root: Path) -> int | None:
    for line in (_read(root / "proc" / "meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _allowed() -> int:
    """Cores that the scheduler lets this process run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _whole(path: Path) -> int | None:
    """A whole number above zero; None for anything else, such as `max` and -1."""
    text = _read(path) or ""
    return int(text) if text.isdigit() and int(text) else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None

"""What this machine, or the container that we are in, has left: cores and memory."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Machine:
    """What may be used."""

    cores: int
    free_bytes: int | None
    """Memory; None if the system does not tell."""


def this_machine(proc: Path = PROC, cgroup: Path = CGROUP, cores: int | None = None) -> Machine:
    """The least of what the system has and what each of our control groups allows."""
    usable = cores if cores is not None else _cores()
    free = [found for found in [_available(proc)] if found is not None]
    for group in _groups(proc, cgroup):
        quota = _quota(group)
        usable = usable if quota is None else min(usable, max(1, math.ceil(quota)))
        left = _left(group)
        free += [] if left is None else [left]
    return Machine(usable, min(free, default=None))


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Not on every system.
        return os.cpu_count() or 1


def _available(proc: Path) -> int | None:
    """Memory that programs could get without swapping."""
    for line in _text(proc / "meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _groups(proc: Path, cgroup: Path) -> Iterator[Path]:
    """The directories of our control groups, and of all above them: each may set a limit."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        roots = [cgroup] if number == "0" else [cgroup / name for name in {controllers, *controllers.split(",")}]
        for root in roots:
            # In a container the path may be that of the world outside: then the root alone is there.
            group = root / path.strip("/")
            while group != root and root in group.parents:
                yield group
                group = group.parent
            yield root


def _quota(group: Path) -> float | None:
    """Cores that a group may use; None without a limit."""
    limit, _, period = _text(group / "cpu.max").strip().partition(" ")
    if not limit:
        limit, period = _text(group / "cpu.cfs_quota_us").strip(), _text(group / "cpu.cfs_period_us").strip()
    return int(limit) / int(period) if limit.isdigit() and period.isdigit() and int(period) else None


def _left(group: Path) -> int | None:
    """Memory that a group may still take, with that of files that it could drop; None without a limit."""
    for limit, used, dropped in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, now = _text(group / limit).strip(), _text(group / used).strip()
        if most.isdigit() and now.isdigit():
            stat = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines())
            return max(0, int(most) - int(now) + int(stat.get(dropped, 0)))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # Not there on this system, or not for us.
        return ""

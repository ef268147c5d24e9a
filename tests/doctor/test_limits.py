"""Memory and cores as control groups of both versions limit them."""

from pathlib import Path

import pytest

from springtide.doctor.limits import cores, memory_bytes

GB = 1 << 30


def machine(root: Path, files: dict[str, str]) -> Path:
    """A root directory with 16 GB in its meminfo, and these files."""
    for name, text in {"proc/meminfo": f"MemTotal: {16 * GB // 1024} kB\nMemFree: 1 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("files", "memory", "share"),
    [
        pytest.param({}, 16 * GB, 8.0, id="no control groups"),
        pytest.param(
            {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/cpu.max": "max 100000"},
            16 * GB,
            8.0,
            id="version 2, no limits",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/",
                "sys/fs/cgroup/memory.max": str(2 * GB),
                "sys/fs/cgroup/cpu.max": "150000 100000",
            },
            2 * GB,
            1.5,
            id="version 2, in a container",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/user/app",
                "sys/fs/cgroup/user/memory.max": str(3 * GB),
                "sys/fs/cgroup/user/app/memory.max": "max",
                "sys/fs/cgroup/user/cpu.max": "400000 100000",
                "sys/fs/cgroup/user/app/cpu.max": "max 100000",
            },
            3 * GB,
            4.0,
            id="version 2, limited further up",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/app\n3:memory:/app",
                "sys/fs/cgroup/memory/app/memory.limit_in_bytes": str(GB),
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(0x7FFFFFFFFFFFF000),
                "sys/fs/cgroup/cpu/app/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000",
            },
            GB,
            0.5,
            id="version 1",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/1\n3:memory:/docker/1",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(GB),
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            GB,
            8.0,
            id="version 1, in a container, cores free",
        ),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, files: dict[str, str], memory: int, share: float) -> None:
    root = machine(tmp_path, files)
    assert memory_bytes(root) == memory
    assert cores(root, lambda: 8) == share


def test_memory_that_nobody_tells(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) is None


def test_this_machine_has_some() -> None:
    assert (memory_bytes() or 0) > 64 << 20
    assert cores() > 0

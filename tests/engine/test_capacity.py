"""How many workers fit: by cores and memory, of the machine, its control groups, or the cluster."""

from pathlib import Path

import pytest

from springtide.engine.spark.capacity import GIB, Capacity, Cost, box_capacity, cluster_capacity
from springtide.engine.spark.machine import Machine, this_machine
from springtide.migration.errors import Refused


@pytest.mark.parametrize(
    ("cores", "free_gib", "running", "fit"),
    [
        (2, 23.0, 0, 8),
        (2, 5.5, 0, 4),
        (1, 64.0, 0, 4),
        (64, 10.0, 0, 8),
        (64, 0.5, 0, 1),
        (64, 0.5, 6, 6),
        (2, None, 3, 8),
    ],
)
def test_a_machine_carries_four_workers_a_core_that_have_their_memory(
    cores: int, free_gib: float | None, running: int, fit: int
) -> None:
    free = None if free_gib is None else int(free_gib * GIB)
    assert box_capacity(cores, free, running=running).workers == fit


def test_the_cost_of_a_worker_is_a_figure_like_any_other() -> None:
    assert box_capacity(2, 8 * GIB, cost=Cost(1.0, 3 * GIB)).workers == 2


def test_a_cluster_carries_what_fits_on_each_machine() -> None:
    assert cluster_capacity([(4, 8192), (5, 1024), (1, 8192)], 2, 768).workers == 2 + 1 + 0
    assert cluster_capacity([], 2, 768).workers is None


def test_more_than_fits_is_refused_with_the_figures() -> None:
    machine = box_capacity(2, 23 * GIB)
    machine.check(8)
    says = r"^50 workers asked for; this machine \(2 cores, 23 GiB free\) carries at most 8: ask for fewer"
    with pytest.raises(Refused, match=says):
        machine.check(50)
    with pytest.raises(Refused, match=r"the cluster \(2 machines, 8 cores, 4\.0 GiB\) carries at most 4: .*--force"):
        cluster_capacity([(4, 2048), (4, 2048)], 2, 768).check(5)
    Capacity(None).check(10_000)


def group(root: Path, **files: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name.replace("__", ".")).write_text(text)


def machine(tmp_path: Path, groups: str) -> Machine:
    (tmp_path / "self").mkdir(exist_ok=True)
    (tmp_path / "self" / "cgroup").write_text(groups)
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    return this_machine(tmp_path, tmp_path / "groups", cores=8)


def test_without_limits_a_machine_has_what_its_system_says(tmp_path: Path) -> None:
    assert machine(tmp_path, "") == Machine(8, 8000 * 1024)
    (tmp_path / "meminfo").unlink()
    assert this_machine(tmp_path, tmp_path / "groups", cores=3) == Machine(3, None)
    assert this_machine().cores >= 1


def test_the_limits_of_every_group_above_count(tmp_path: Path) -> None:
    root = tmp_path / "groups"
    group(root, cpu__max="max 100000", memory__max="max", memory__current="1")
    group(root / "pod", cpu__max="250000 100000", memory__max="6000000", memory__current="5000000")
    (root / "pod" / "memory.stat").write_text("anon 4000000\ninactive_file 500000\n")
    group(root / "pod" / "box", cpu__max="max 100000", memory__max="max", memory__current="9")
    assert machine(tmp_path, "0::/pod/box\n") == Machine(3, 1_500_000)


def test_the_older_kind_of_groups(tmp_path: Path) -> None:
    root = tmp_path / "groups"
    group(root / "cpu,cpuacct" / "a", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    group(root / "memory" / "a", memory__limit_in_bytes="3000000", memory__usage_in_bytes="2000000")
    assert machine(tmp_path, "4:memory:/a\n3:cpu,cpuacct:/a\n0::/\n") == Machine(1, 1_000_000)


def test_in_a_container_the_path_of_the_group_may_be_that_of_the_world_outside(tmp_path: Path) -> None:
    group(tmp_path / "groups", memory__max="2000", memory__current="500")
    assert machine(tmp_path, "0::/docker/0123\n").free_bytes == 1500

"""The processes of workers on this machine, for demonstrations and experiments that lose one on purpose."""

from pathlib import Path

from springtide.ids import WorkerId

BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def worker_processes(ancestor: int) -> dict[WorkerId, int]:
    """The process ids of the executors among a process's descendants, by worker."""
    parents: dict[int, int] = {}
    found: dict[int, WorkerId] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if BACKEND in words and "--executor-id" in words:
            found[int(entry.name)] = WorkerId(words[words.index("--executor-id") + 1])
    return {worker: pid for pid, worker in found.items() if _descends(pid, ancestor, parents)}


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid not in (0, 1, ancestor):
        pid = parents.get(pid, 0)
    return pid == ancestor

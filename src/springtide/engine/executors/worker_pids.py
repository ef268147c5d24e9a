"""The processes of workers on this machine, for demonstrations and experiments that lose one on purpose."""

import psutil

from springtide.ids import WorkerId

BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def worker_processes(ancestor: int) -> dict[WorkerId, int]:
    """The process ids of the executors among a process's descendants, by worker."""
    found: dict[WorkerId, int] = {}
    for process in psutil.Process(ancestor).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # It has ended meanwhile.
            continue
        if BACKEND in words and "--executor-id" in words:
            found[WorkerId(words[words.index("--executor-id") + 1])] = process.pid
    return found

"""What every function on a worker needs: storage, its place, its memory, errors that name the step."""

import gc
import socket
import sysconfig
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark import TaskContext

from springtide.blocks.local import LocalBlocks
from springtide.blocks.patience import patient_store
from springtide.dataflow.errors import StepFailed
from springtide.metrics.report import HostReport

PACKAGE, PYTHON = Path(__file__).parents[2], Path(sysconfig.get_path("stdlib"))
WORKER_PROPERTY = "springtide.worker"
"""The local property in which a placed task finds the id of the worker it runs on."""


@dataclass(frozen=True)
class Storage:
    """Where blocks lie: a directory on the worker, and the durable store's URL."""

    local: str
    durable: str
    clustered: bool = False
    """Several workers, each with a directory of its own; tasks that are not placed keep nothing."""
    driver: str = ""
    """Whose tasks these are: what lies in a directory before the first of them comes is left by others."""

    def open(self) -> LocalBlocks:
        durable = patient_store(self.durable)
        if not self.clustered:
            return LocalBlocks(Path(self.local), durable, driver=self.driver)
        worker = here()
        return LocalBlocks(Path(self.local, worker), durable, worker, keep=bool(worker), driver=self.driver)


def here() -> str:
    """The worker that this task was placed on; empty if it was not placed, or is no task."""
    context = TaskContext.get()
    return (context.getLocalProperty(WORKER_PROPERTY) or "") if context is not None else ""


class naming:
    """Make any error name the step it happened in."""

    def __init__(self, step: str, doing: str) -> None:
        self.step, self.doing = step, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StepFailed):
            raise StepFailed(self.step, self.doing, f"{type(error).__name__}: {error}", _where(error)) from error


def _where(error: BaseException) -> str:
    """The innermost line of a traceback that is neither ours nor a library's: the user's own."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "site-packages" not in frame.filename and not {PACKAGE, PYTHON} & set(Path(frame.filename).parents):
            return f"  at {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
    return ""


@cache
def settle() -> None:
    """Once a process: what is loaded stays, so the collection that Spark runs after every task need not search it."""
    gc.freeze()


def partition() -> int:
    context = TaskContext.get()
    assert context is not None, "this runs in a Spark task"
    return context.partitionId()


def table_of(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """All batches as one table of this schema."""
    if not batches:
        return schema.empty_table()
    return pa.Table.from_batches(batches).select(schema.names).cast(schema)


def host_report() -> HostReport | None:
    """This machine's processors; None where the system can't tell."""
    try:
        times = psutil.cpu_times()
    except (OSError, psutil.Error):
        return None
    kinds = times._asdict()
    # A guest's time is in that of the user already.
    total = sum(seconds for kind, seconds in kinds.items() if kind not in ("guest", "guest_nice"))
    idle = times.idle + kinds.get("iowait", 0.0)  # Waiting for a disk is not working.
    return HostReport(socket.gethostname(), total - idle, total)


def resident_bytes() -> int:
    """Memory of this process that is its own: mapped files do not count."""
    try:
        memory = psutil.Process().memory_info()
    except (OSError, psutil.Error):
        return 0
    return int(memory.rss - getattr(memory, "shared", 0))

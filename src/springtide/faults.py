"""Failpoints: named places where a test makes the process die or an operation fail.

Nothing happens unless the environment variable `SPRINGTIDE_FAILPOINTS` arms a point. Its form is
`point=action[@epoch]`, separated by commas, for example `manifest.after=kill@3,block.put=oserror`.

Actions: `kill` ends the process with SIGKILL, `oserror` raises an I/O error before the operation,
`late-oserror` raises it after the operation took effect (a call that timed out but landed), and
`once` (only with a marker file in `SPRINGTIDE_FAILPOINT_DIR`) raises a RuntimeError the first time.
`executor`, the first time too, ends the whole executor that a Python worker belongs to, with SIGKILL;
`hang` makes the worker wait for a file `POINT.go` beside its marker, whoever ends meanwhile. `note` leaves
a marker and does nothing else. `stop` pauses the process with SIGSTOP, the first time, until somebody continues it.
`hold` makes whoever comes wait while there is a file `POINT.hold`, and leave a marker `POINT.PID`; if ids of
processes are in the file, only those and what they have started, such as the workers of an executor, are meant.
Markers hold the id of the process that left them.
"""

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POINTS = {
    "epoch.start": "the driver has been handed an epoch and has done nothing yet",
    "update.begun": "a worker has an instance's rows and its state, and has written nothing yet",
    "block.put": "a worker writes a block to the durable store",
    "block.written": "a worker has written its blocks; the driver does not know yet",
    "records.collected": "the driver holds all commit records and has not written the manifest",
    "manifest.put": "the driver writes the manifest",
    "manifest.landed": "the manifest is written; the driver does not know yet whether it still holds the checkpoint",
    "manifest.after": "the manifest is committed; nothing is published",
    "publish.before": "a sink is about to publish the epoch",
    "publish.sent": "a worker has sent a sink's rows and their marker, and has not committed them",
    "publish.part": "a sink has written some of the epoch",
    "publish.staged": "a sink has all parts of the epoch; nobody sees them yet",
    "publish.after": "every sink has published; Spark has not logged the epoch",
    "report.after": "the epoch's report is written; Spark has not logged the epoch",
    "gc.delete": "garbage collection is about to delete blocks",
    "claim.put": "a driver claims the checkpoint",
    "generation.copied": "a driver has copied what its predecessor had; it does not count yet",
    "copy.read": "a worker is about to read slices that another one needs",
    "copy.written": "a worker has written copies of slices; the driver does not know yet",
    "deposit.written": "a worker has stored a run durably; the driver does not know yet",
    "replay.noted": "the driver has noted which epochs it will repeat, and has not gone back yet",
    "plan.flip": "the targets of a migration have all they need; the driver is about to change owners",
    "stop.commit": "the app has stopped for a migration; the driver is about to make its state durable",
    "stop.swap": "the driver is about to let all workers go, and to ask for others",
    "stop.init": "new workers have come; the driver is about to tell them to fetch their state",
    "restore.fetched": "a new worker has fetched its state; the driver does not know yet",
}
"""Every failpoint, with what has happened when it fires."""

ENVIRONMENT = "SPRINGTIDE_FAILPOINTS"
MARKERS = "SPRINGTIDE_FAILPOINT_DIR"
POLL_S = 0.05


def _armed(point: str, epoch: int | None) -> str | None:
    spec = os.environ.get(ENVIRONMENT)
    if not spec:
        return None
    for item in spec.split(","):
        name, _, action = item.partition("=")
        action, _, when = action.partition("@")
        if name == point and (not when or (epoch is not None and int(when) == epoch)):
            return action
    return None


def fire(point: str, epoch: int | None = None) -> None:
    """Do what the environment asks for at `point`; normally nothing."""
    action = _armed(point, epoch)
    if action is None or action == "late-oserror":
        return
    if action == "kill":
        _mark(point)
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "oserror":
        raise OSError(errno.ENOSPC, f"failpoint {point}: no space left on device")
    elif action == "executor" and _mark(point):
        os.kill(_parent(os.getppid()), signal.SIGKILL)
    elif action == "hang" and _mark(point):
        _outlive(Path(os.environ[MARKERS], f"{point}.go"))
    elif action == "hold":
        _hold(point)
    elif action == "stop" and _mark(point):
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "note":
        _mark(f"{point}.{os.getpid()}")
    elif action == "once" and _mark(point):
        raise RuntimeError(f"failpoint {point}")


def _outlive(sign: Path) -> None:
    """Wait for a sign, deaf to whoever would end this process before."""
    for one in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    while not sign.exists():
        time.sleep(POLL_S)


def _hold(point: str) -> None:
    order = Path(os.environ[MARKERS], f"{point}.hold")
    given = _given(order)
    if _meant(order):
        _mark(f"{point}.{os.getpid()}")
        while given is not None and _given(order) == given:  # A later order is for those who come later.
            time.sleep(POLL_S)


def _given(order: Path) -> int | None:
    """When an order to hold was written; None if it is not there."""
    try:
        return order.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _meant(order: Path) -> bool:
    """Whether an order to hold is there, and this process is meant by it."""
    try:
        whose = set(order.read_text().split())
    except FileNotFoundError:
        return False
    line = (os.getpid(), os.getppid(), _parent(os.getppid()))
    return not whose or not whose.isdisjoint(map(str, line))


def _parent(pid: int) -> int:
    """A process's parent: an executor starts a daemon, and that one the workers."""
    # Here, as only a test that holds somebody needs it, and every command of the CLI comes by.
    import psutil

    return psutil.Process(pid).ppid()


@contextmanager
def around(point: str, epoch: int | None = None) -> Iterator[None]:
    """Fire before the block, and for `late-oserror` after it has taken effect."""
    fire(point, epoch)
    yield
    if _armed(point, epoch) == "late-oserror" and _mark(point):
        raise OSError(errno.ETIMEDOUT, f"failpoint {point}: timed out")


def _mark(point: str) -> bool:
    """Leave a marker that the point fired; False if it was there already."""
    directory = os.environ.get(MARKERS)
    if directory is None:
        return True
    try:
        with open(Path(directory, point), "x") as marker:
            marker.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True

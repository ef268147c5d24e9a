"""Memory, cores, disk space and loopback ports."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from springtide.doctor.finding import Finding, State
from springtide.doctor.limits import cores, memory_bytes

MEMORY_BYTES = 5 << 30
"""Spark's driver takes 4 GB as it is set up, and Python beside it."""
DISK_BYTES = 2 << 30
LIMITED = "within this process's limits"


def memory(measure: Callable[[], int | None] = memory_bytes) -> Finding:
    """Enough for the driver as Springtide sets it up."""
    found = measure()
    if found is None:
        return Finding("memory", State.WARNING, "could not be read")
    if found < MEMORY_BYTES:
        remedy = "give Spark less than its 4 GB: --conf spark.driver.memory=1g"
        return Finding("memory", State.WARNING, f"{_gigabytes(found)} {LIMITED}", remedy)
    return Finding("memory", State.OK, f"{_gigabytes(found)} {LIMITED}")


def processor(measure: Callable[[], float] = cores) -> Finding:
    """At least two cores: an epoch's tasks, and the driver and copies beside them."""
    found = measure()
    if found < 2:
        remedy = "allow two or more: epochs and all that goes on beside them share what there is"
        return Finding("cores", State.WARNING, f"{found:g} {LIMITED}", remedy)
    return Finding("cores", State.OK, f"{found:g} {LIMITED}")


def disks(checkpoints: Path | None = None, temporary: Path | None = None) -> list[Finding]:
    """Where checkpoints go without --checkpoint, and where workers and Spark keep what they need at hand."""
    here, scratch = checkpoints or Path.cwd(), temporary or Path(tempfile.gettempdir())
    return [
        disk("disk: checkpoints", here, "--checkpoint DIR names another place"),
        disk("disk: temporary", scratch, "TMPDIR names another place, and --local one for the workers' state"),
    ]


def disk(name: str, directory: Path, otherwise: str, free: Callable[[Path], int] | None = None) -> Finding:
    """A directory that can be written to, with room."""
    if not os.access(directory, os.W_OK):
        return Finding(name, State.WARNING, f"{directory} cannot be written to", otherwise)
    left = free(directory) if free else shutil.disk_usage(directory).free
    room = f"{_gigabytes(left)} free in {directory}"
    return Finding(name, State.OK, room) if left >= DISK_BYTES else Finding(name, State.WARNING, room, otherwise)


def loopback(address: str = "127.0.0.1") -> Finding:
    """Spark's driver and its workers speak over ports, on one machine too."""
    try:
        with socket.socket() as server:
            server.bind((address, 0))
            server.listen()
            with socket.create_connection(server.getsockname(), timeout=5):
                pass
    except OSError as error:
        remedy = "let processes open and reach ports on 127.0.0.1: Spark cannot start without"
        return Finding("loopback ports", State.MISSING, str(error), remedy, needed=True)
    return Finding("loopback ports", State.OK, "can be opened and reached", needed=True)


def host_name(resolve: Callable[[str], str] = socket.gethostbyname) -> Finding:
    """Spark wants to know its own address, and asks for that of the host's name unless it is told."""
    if told := os.environ.get("SPARK_LOCAL_IP"):
        return Finding("host name", State.OK, f"SPARK_LOCAL_IP={told}", needed=True)
    name = socket.gethostname()
    try:
        return Finding("host name", State.OK, f"{name} is {resolve(name)}", needed=True)
    except OSError as error:
        remedy = "export SPARK_LOCAL_IP=127.0.0.1, or add the name to /etc/hosts"
        return Finding("host name", State.MISSING, f"{name}: {error}", remedy, needed=True)


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GB"

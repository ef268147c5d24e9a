"""The processes of a driver, found through /proc: only its own descendants are ever signalled."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Process:
    """A process that no later one with the same number can be mistaken for."""

    pid: int
    started: str
    """In the kernel's ticks."""

    @property
    def state(self) -> str:
        """R, S, D or T as the kernel has it; empty once it is gone."""
        found = _stat(self.pid)
        return found[0] if found and found[19] == self.started and found[0] not in "ZX" else ""

    @property
    def command(self) -> list[str]:
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text().split("\0")
        except OSError:
            return []

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it is gone."""
        if self.state:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def family(self) -> "list[Process]":
        """It and all its descendants, itself first."""
        children: dict[int, list[int]] = {}
        for pid, fields in _everybody():
            children.setdefault(int(fields[1]), []).append(pid)
        found, left = [self], list(children.get(self.pid, []))
        while left:
            pid = left.pop()
            found += process(pid)
            left += children.get(pid, [])
        return found

    def executors(self) -> "dict[str, Process]":
        """Spark's executors among its descendants, by worker."""
        found = {}
        for one in self.family():
            command = one.command
            if BACKEND in command and "--executor-id" in command and one.state:
                found[command[command.index("--executor-id") + 1]] = one
        return found


def process(pid: int) -> list[Process]:
    """The process with a number; none if there is none."""
    fields = _stat(pid)
    return [Process(pid, fields[19])] if fields else []


def _everybody() -> Iterator[tuple[int, list[str]]]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            yield int(name), fields


def _stat(pid: int) -> list[str]:
    """The kernel's line on a process from its state on; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []

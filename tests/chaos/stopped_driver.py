"""A driver in a process of its own that stops itself at a failpoint, and goes on when it is told to."""

import os
import signal
import subprocess
from pathlib import Path

from chaos_kit import DEADLINE_S
from waiting import wait_until


class Stopped:
    """A driver process that stops itself."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path, marker: Path) -> None:
        self.log, self.marker = log, marker
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=environment, stdout=out, stderr=out, cwd=log.parent, start_new_session=True
            )

    def __enter__(self) -> "Stopped":
        wait_until(f"{self.marker.name} to stop the driver", self._still, DEADLINE_S, self._said)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(DEADLINE_S)

    def _still(self) -> bool:
        assert self.process.poll() is None, self._said()
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return self.marker.exists() and stat[0] == "T"

    def _said(self) -> str:
        return self.log.read_text(errors="replace")

    def goes_on(self) -> str:
        """Continue it; what it says in the end."""
        self.process.send_signal(signal.SIGCONT)
        code = self.process.wait(DEADLINE_S)
        assert code == 1, f"code {code}: {self._said()}"
        return self._said()

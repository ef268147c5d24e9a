"""Flink's turn: the query in Flink SQL, by a process of Flink's own Python that reads and answers lines of JSON."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from springtide.bench.experiments.nexmark.turn import LIMIT_S, Turn
from springtide.errors import SpringtideError
from springtide.java_home import find_java
from springtide.workloads.nexmark.queries.catalogue import Query

RUNNER = Path(__file__).with_name("flink_runner.py")
TOLD = 400
"""Characters of what a process said last, in an error."""


class FlinkFailed(SpringtideError):
    """Flink could not do what it was asked for; `said` is its own answer, or the end of its log."""

    def __init__(self, asked: str, said: str) -> None:
        super().__init__(asked, said)
        self.asked, self.said = asked, said

    def __str__(self) -> str:
        return f"{self.asked}: expected an answer of Flink's, got: {self.said or 'nothing'}. `make flink` sets it up"


def installed(checkout: Path = Path(__file__).parents[5]) -> Path | None:
    """The Python that has Flink, where `make flink` puts it; None if it is not there."""
    places = (place / ".flink" / "bin" / "python" for place in (checkout, Path.cwd()))
    return next((python for python in places if python.is_file()), None)


@dataclass(frozen=True)
class Flink:
    process: "Process"
    name: str = "flink"

    def lacks(self, query: Query) -> str | None:
        return query.flink_lacks

    def turn(self, query: Query, directory: Path, output: Path | None) -> Turn:
        place = None if output is None else str(output)
        return Turn(self.process.ask({"run": query.name, "directory": str(directory), "output": place})["seconds"])


class Process:
    """The other side of the protocol: each question is a line, and so is its answer."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] = {}) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "TZ": "UTC", **environment},
            )
        self.start_up_s: float = self._answer("start")["start_up_s"]

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer; FlinkFailed if it is an error, or if there is none."""
        assert self._process.stdin is not None, "it was opened as a pipe"
        asked = json.dumps(question)
        try:
            self._process.stdin.write(f"{asked}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise FlinkFailed(asked, self._last_words()) from None
        return self._answer(asked)

    def _answer(self, asked: str) -> dict[str, Any]:
        assert self._process.stdout is not None, "it was opened as a pipe"
        # One that never answers is ended, and then its output ends as well.
        limit = Timer(LIMIT_S, self._process.kill)
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            raise FlinkFailed(asked, self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise FlinkFailed(asked, answer["error"][:TOLD])
        return answer

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-TOLD:].strip()

    def close(self) -> None:
        """End the process: by what it reads, and if it does not heed that, at once."""
        try:
            self._process.communicate(json.dumps({"stop": True}) + "\n", timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()


@contextmanager
def flink(python: Path, scratch: Path) -> Iterator[Flink]:
    """Flink, up and warm; it ends with the block."""
    process = Process([str(python), str(RUNNER)], scratch / "flink.log", {"JAVA_HOME": str(find_java())})
    try:
        yield Flink(process)
    finally:
        process.close()

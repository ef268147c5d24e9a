"""Where contestants meet: each in a process and a Spark of its own, one at a time on the same cores."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from springtide.bench.harness.contestants import Contestant, Load, Round
from springtide.engine.spark.session import SessionConfig, make_session

Result = TypeVar("Result")
END_S = 2.0
"""How long a process that was told to end may take."""


class Arena:
    """Runs rounds, one after the other; whoever waits keeps its Spark, warm and idle."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._processes: dict[str, ProcessPoolExecutor] = {}
        self._closing = ExitStack()

    def round(self, contestant: Contestant, load: Load, epochs: int) -> Round:
        """Let a contestant run a round in its own process."""
        return self.call(contestant.name, _round, contestant, load, epochs)

    def call(self, name: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in the process of this name."""
        if name not in self._processes:
            process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            self._processes[name] = self._closing.enter_context(process)
        return self._processes[name].submit(function, *arguments).result()

    def leave(self, name: str) -> None:
        """End the process of this name, and its Spark with it."""
        self._processes.pop(name).shutdown()

    def close(self) -> None:
        """Let all processes finish what they do, and end."""
        self._closing.close()

    def give_up(self) -> None:
        """End all processes now, whatever they do; their Sparks end with them."""
        for process in active_children():
            process.terminate()
            process.join(END_S)
            process.kill()
        self.close()


@contextmanager
def arena(name: str) -> Iterator[Arena]:
    """An arena with a scratch directory; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"springtide-bench-{name}-", ignore_cleanup_errors=True) as scratch:
        found = Arena(Path(scratch))
        try:
            yield found
        except BaseException:
            found.give_up()
            raise
        found.close()


def _round(contestant: Contestant, load: Load, epochs: int) -> Round:
    """Runs in the contestant's process."""
    return contestant.round(session(), load, epochs)


@cache
def session(memory: str = "") -> SparkSession:
    """The Spark of this process, with as much memory for its driver as `8g`, or what is usual."""
    return make_session("bench", SessionConfig(settings={"spark.driver.memory": memory} if memory else {}))

"""The Spark jobs of an app's epochs, under one tag: counted, and cancelled together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext


class TaggedJobs:
    """What epochs run, and nothing that runs beside them."""

    def __init__(self, context: SparkContext, app: str) -> None:
        self._context, self._tag = context, f"springtide-{app}"
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        """How many run."""
        return self._count

    @contextmanager
    def job(self) -> Iterator[None]:
        """Jobs of this thread, as long as the block runs."""
        self._context.addJobTag(self._tag)
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
            self._context.removeJobTag(self._tag)

    def cancel(self) -> None:
        """End all of them; they fail."""
        self._context.cancelJobsWithTag(self._tag)

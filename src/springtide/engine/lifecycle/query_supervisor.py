"""Keeps the query going: Spark is fed the epochs that must be repeated, and started again after going back."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from springtide.engine.epoch.runner import EpochRunner
from springtide.engine.wire.retry_signals import GoBack
from springtide.logs import room_logger
from springtide.waits import WaitedTooLong, join

log = room_logger(__name__)
START_S = 300.0
"""How long Spark may take to start a query."""
END_S = 60.0
"""How long Spark may take to end one in which no epoch runs."""
REMEDY = "Spark does not answer: end the process, and start the app again. It goes on where it was"
ONE_EPOCH: Mapping[str, Any] = {"once": True}
"""The trigger of a query that runs the epoch it was fed, and no other."""


class QuerySupervisor:
    """One query after another; most often the first is the only one."""

    def __init__(
        self,
        runner: EpochRunner,
        start: Callable[[Mapping[str, Any]], StreamingQuery],
        trigger: Mapping[str, Any],
    ) -> None:
        self.runner, self._start, self._trigger = runner, start, trigger
        self.failure: BaseException | None = None
        self._repeating = False
        self._stopped = False
        self._turn = threading.Lock()
        self.query = self._next()
        self._thread = threading.Thread(target=self._follow, name="springtide-supervisor", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether there are epochs to come."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Finish the epoch in flight and stop the query; WaitedTooLong if either does not end."""
        try:
            self.runner.stop()
        except WaitedTooLong:
            try:
                self._end()
            except Exception as error:  # It can't end before the epoch, of which more is known.
                log.warning("the query of an epoch that gives no sign was left behind: %s", error)
            raise
        self._end()

    def _end(self) -> None:
        if not self._turn.acquire(timeout=START_S):
            raise WaitedTooLong("a query of Spark to start", START_S, REMEDY)
        try:
            self._stopped = True
            _stop(self.query)
        finally:
            self._turn.release()
        join(self._thread, END_S, REMEDY)

    def _next(self) -> StreamingQuery:
        self._repeating = self.runner.feed_spark()
        return self._start(ONE_EPOCH if self._repeating else self._trigger)

    def _follow(self) -> None:
        """Until the query ends for good."""
        try:
            while True:
                failure = _outcome(self.query)
                with self._turn:
                    if self._stopped or self.runner.refused:
                        return
                    if isinstance(self.runner.failure, GoBack):
                        self.runner.go_back()
                    elif failure is not None or not self._repeating:
                        self.failure = self.runner.failure or failure
                        return
                    self.query = self._next()
        except BaseException as error:
            self.failure = error


def _stop(query: StreamingQuery) -> None:
    """Stop a query; in a thread, as Spark itself waits for its epoch without an end."""
    failed: list[Exception] = []

    def stop() -> None:
        try:
            query.stop()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=stop, name="springtide-stop-query", daemon=True)
    thread.start()
    join(thread, END_S, REMEDY)
    if failed:
        raise failed[0]


def _outcome(query: StreamingQuery) -> BaseException | None:
    """Wait until a query ends; what made it fail, if it failed."""
    try:
        query.awaitTermination()
    except PySparkException as error:
        return error
    return None

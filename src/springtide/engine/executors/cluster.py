"""The workers of a running app: Spark's executors, their places and zones, asked for and let go."""

import time
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.known_workers import KnownWorkers
from springtide.engine.executors.shared import Employed, Lease
from springtide.engine.executors.warm_up import practice
from springtide.engine.spark.capacity import Capacity
from springtide.engine.spark.internals import Placement, executor_place
from springtide.engine.worker.task_context import WORKER_PROPERTY
from springtide.errors import SpringtideError
from springtide.ids import WorkerId
from springtide.plan.worker import Worker

POLL_S = 0.1
WARM_ROUNDS = 12
"""A JVM compiles what it runs often; the first rounds are slow."""


Wanted = Callable[[], bool]


def always() -> bool:
    """Somebody waits for them to the end."""
    return True


class NotEnoughWorkers(SpringtideError):
    """The cluster has not given the workers that were asked for."""

    def __init__(self, wanted: int, got: int, waited_s: float) -> None:
        super().__init__(wanted, got, waited_s)
        self.wanted, self.got, self.waited_s = wanted, got, waited_s

    def __str__(self) -> str:
        return (
            f"asked the cluster for {self.wanted} workers, got {self.got} in {self.waited_s:.0f} s: "
            "free some of its resources, or ask for fewer"
        )


class Cluster:
    """Workers and where tasks run. One slot of each worker is left to copies, if it has several."""

    def __init__(self, spark: SparkSession, watch: JobWatch, zones: Sequence[str] = ()) -> None:
        self.spark, self.watch = spark, watch
        shared = Lease.executors(spark)
        self._executors = shared.spark
        self._demand = shared.join()
        self._placement = Placement(spark, WORKER_PROPERTY)
        self._known = KnownWorkers(zones)

    def alive(self) -> frozenset[WorkerId]:
        """Who is registered with Spark now."""
        return frozenset(map(WorkerId, self._executors.ids())) - {WorkerId("driver")}

    def workers(self) -> list[Worker]:
        """Everybody who is registered, in the order in which they came."""
        alive = self.alive()
        if self._known.unknown(alive):
            for executor in self._executors.all().values():
                self._known.learn(executor.id, executor.host, executor.slots)
            self._known.forget(alive)
        return self._known.among(alive)

    def employ(self, employed: Employed) -> None:
        """From now on `employed` tells who is in the app's plan: other apps on the same Spark leave them alone."""
        self._demand.employed = employed

    def departed(self, employed: frozenset[WorkerId]) -> tuple[WorkerId, ...]:
        """The last to have gone for good, of those who have ever been here."""
        return self._known.departed(self.alive() | employed)

    def ask(self, total: int) -> None:
        """Ask for `total` workers in all; they come later, or never."""
        self._demand.ask(total)

    def check(self, total: int, *, force: bool = False) -> None:
        """Refused if there is no room for `total` workers, unless it is forced."""
        if not force:
            self._demand.check(total)

    def capacity(self) -> Capacity:
        """How many workers there is room for."""
        return self._demand.capacity()

    def give_back(self, wanted: int, before: frozenset[WorkerId]) -> None:
        """A growth is off: want `wanted` workers again; who was not there before, or is still to come, goes."""
        self._demand.give_back(wanted, before)

    def sweep(self) -> None:
        """Let those go who have come late for a growth that was given back."""
        self._demand.sweep()

    def wait_for(self, count: int, timeout_s: float, wanted: Wanted = always) -> list[Worker]:
        """Wait until `count` workers are registered, or they are not wanted any more."""
        deadline = time.monotonic() + timeout_s
        while True:
            workers = self.workers()
            if len(workers) >= count or not wanted():
                return workers
            if time.monotonic() > deadline:
                raise NotEnoughWorkers(count, len(workers), timeout_s)
            time.sleep(POLL_S)

    def dismiss(self, workers: Iterable[WorkerId], wanted: int) -> None:
        """Let workers go that no other app employs; there should be `wanted` without them."""
        self._demand.dismiss(workers, wanted)

    @property
    def alone(self) -> bool:
        """Whether no other app is on this Spark."""
        return self._demand.alone

    def replace(self, count: int, timeout_s: float) -> list[Worker]:
        """Let everybody go and return `count` others; fewer, if no more come within `timeout_s`."""
        old = self.alive()
        self._demand.replace(old, count)
        deadline = time.monotonic() + timeout_s
        while True:
            new = [worker for worker in self.workers() if worker.id not in old]
            if len(new) >= count or (new and time.monotonic() > deadline):
                return new[:count]
            if time.monotonic() > deadline:
                raise NotEnoughWorkers(count, len(new), timeout_s)
            time.sleep(POLL_S)

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        """The same rows; partition i runs on `workers[i]` if that one is there and has room in time."""
        return self._placement.place(frame, [self._place(w) for w in workers])

    def _place(self, worker: WorkerId) -> str:
        known = self._known.get(worker)
        return executor_place(known.host if known else "localhost", worker)

    def warm_up(self, workers: Sequence[WorkerId], wanted: Wanted = always) -> frozenset[WorkerId]:
        """Let workers do all that an epoch does, before they own anything; returns those that are warm.

        Ends early if they are not wanted any more.
        """
        warm = self._known.warm(workers)
        known = [(w, self._known.get(w)) for w in workers if w not in warm]
        cold = [w for w, worker in known if worker is not None for _ in range(worker.slots + 1)]
        if cold:
            for _ in range(WARM_ROUNDS):
                if not wanted():
                    break
                with self.watch.job("app", "warming up workers"):
                    rows = practice(self.spark, len(cold), lambda frame: self.place(frame, cold)).collect()
                self._known.warmed(WorkerId(row.record) for row in rows)
        return self._known.warm(workers)

    def stop(self) -> None:
        """The app has ended."""
        self._demand.end()

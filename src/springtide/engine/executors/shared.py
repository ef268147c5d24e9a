"""What apps on one Spark share: the executors, each asked for by whoever wants most, and Spark itself."""

import re
import shutil
import threading
from collections.abc import Callable, Iterable
from typing import ClassVar

from pyspark.sql import SparkSession

from springtide.engine.spark.capacity import UNKNOWN, Capacity, box_capacity, cluster_capacity
from springtide.engine.spark.internals import Executors, executor_files
from springtide.engine.spark.machine import this_machine
from springtide.ids import WorkerId
from springtide.logs import room_logger

log = room_logger(__name__)
BOX = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
Employed = Callable[[], frozenset[WorkerId]]


class Demand:
    """One app's share in the executors: how many it wants, and whom it employs."""

    def __init__(self, executors: "SharedExecutors", employed: Employed) -> None:
        self._executors, self.employed = executors, employed
        self.wanted = 0

    @property
    def alone(self) -> bool:
        """Whether no other app has a share."""
        return self._executors.sole(self)

    def ask(self, total: int) -> None:
        """Want `total` executors; they come later, or never."""
        self.wanted = total
        self._executors.meet()
        self._executors.add_machines()

    def check(self, total: int) -> None:
        """Refused if there is no room for `total` executors."""
        self._executors.check(total)

    def capacity(self) -> Capacity:
        """How many there is room for."""
        return self._executors.capacity()

    def dismiss(self, workers: Iterable[WorkerId], wanted: int) -> None:
        """Let workers go that no other app employs; there should be `wanted` without them."""
        self.wanted = wanted
        self._executors.meet(spare=workers)

    def give_back(self, wanted: int, before: frozenset[WorkerId]) -> None:
        """Want `wanted` again, as when only those of `before` were there: who came since, or is still to come, goes."""
        self.wanted = wanted
        self._executors.give_back(before)

    def sweep(self) -> None:
        """Let those go who have come late, after what was asked for had been given back."""
        self._executors.sweep()

    def replace(self, workers: Iterable[WorkerId], wanted: int) -> None:
        """Let the app's own workers go, though it employs them; for an app that is alone."""
        self.wanted = wanted
        self._executors.meet()
        self._executors.spark.dismiss(sorted(workers))
        self._executors.add_machines()

    def end(self) -> None:
        """The app has ended; nobody stays for it alone."""
        self._executors.leave(self)


class SharedExecutors:
    """The executors of one Spark, for all apps of this process that run on it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = Executors(spark)
        box = BOX.fullmatch(spark.sparkContext.master or "")
        self._box = tuple(map(int, box.groups())) if box else None
        self._left_behind = executor_files(spark) if self._box else None
        self._before: frozenset[WorkerId] | None = None
        """Who was there before a growth that was given back; None if there is none to be swept up after."""
        self._demands: list[Demand] = []
        self._asked = 0
        self._turn = threading.RLock()

    def join(self, employed: Employed = frozenset) -> Demand:
        """A share for one more app; it employs nobody yet."""
        with self._turn:
            demand = Demand(self, employed)
            self._demands.append(demand)
            return demand

    def sole(self, demand: Demand) -> bool:
        """Whether an app is the only one."""
        with self._turn:
            return self._demands == [demand]

    def leave(self, demand: Demand) -> None:
        with self._turn:
            self._demands.remove(demand)
            if self._demands:
                self.meet(spare=demand.employed())

    def meet(self, spare: Iterable[WorkerId] = ()) -> None:
        """Ask for as many as the app that wants most; of those to spare, let go whom nobody employs."""
        with self._turn:
            total = self._total
            if total > self._asked:
                self._before = None  # Who comes late is of use again.
            self._asked = total
            self.spark.ask(total)
            going = frozenset(spare) - self._employed()
            if going:
                self.spark.dismiss(sorted(going))
            self._stop_machines(keep=self._there() - going)

    def add_machines(self) -> None:
        """In a box: let there be a machine for everybody who is wanted.

        One after the other, as each takes a while on a machine that has its hands full: whoever wants fewer meanwhile
        is heard.
        """
        while self._box is not None:
            with self._turn:
                if self._machines >= self._total:
                    return
                self.spark.add_machine(*self._box[1:])

    def _stop_machines(self, keep: frozenset[WorkerId]) -> None:
        """In a box: machines that were added and are not needed any more go, unless one runs somebody of `keep`."""
        if self._box is not None and (surplus := self._machines - max(self._total, self._box[0])) > 0:
            self.spark.stop_machines(surplus, keep)

    @property
    def _machines(self) -> int:
        """Of the box."""
        return 0 if self._box is None else self._box[0] + self.spark.added_machines()

    def give_back(self, before: frozenset[WorkerId]) -> None:
        """Ask for no more than is wanted now; who came since `before`, or is still to come, goes if nobody needs it."""
        with self._turn:
            self.meet()
            self._stop_machines(keep=self._employed() | before)  # And with them executors that have not registered yet.
            self._before = before
            self.sweep()

    def sweep(self) -> None:
        """Let late comers go, as many as there are too many."""
        with self._turn:
            if self._before is None:
                return
            there = self._there()
            late = there - self._before - self._employed()
            going = sorted(late, key=_age)[: max(0, len(there) - self._total)]
            if going:
                log.info("executors %s came for a growth that was given back, and go", ", ".join(going))
                self.spark.dismiss(going)

    @property
    def _total(self) -> int:
        return max(demand.wanted for demand in self._demands)

    def _there(self) -> frozenset[WorkerId]:
        return frozenset(map(WorkerId, self.spark.ids())) - {WorkerId("driver")}

    def _employed(self) -> frozenset[WorkerId]:
        return frozenset().union(*(demand.employed() for demand in self._demands))

    def check(self, total: int) -> None:
        """Refused if there is no room for `total` executors. Machines that are there are not counted again."""
        with self._turn:
            if total > self._machines:
                self.capacity().check(total)

    def capacity(self) -> Capacity:
        """How many there is room for: on this machine if that is the cluster, else as its manager says."""
        if self._box is not None:
            machine = this_machine()
            return box_capacity(machine.cores, machine.free_bytes, running=len(self._there()))
        try:
            return cluster_capacity(self.spark.machines(), *self.spark.size())
        except Exception as error:
            log.warning("the cluster manager does not say how many workers it has room for: %s", error)
            return UNKNOWN

    def stop(self) -> None:
        """Stop the machines that were started here, and remove what executors in the box have left."""
        self.spark.end()
        if self._left_behind is not None:
            shutil.rmtree(self._left_behind, ignore_errors=True)


def _age(worker: WorkerId) -> tuple[int, str]:
    """The last to come first."""
    return (-int(worker) if worker.isdigit() else 0, worker)


class Lease:
    """An app's use of a Spark that was started for one like it; the last to give it back stops it."""

    _users: ClassVar[dict[str, int]] = {}
    """By Spark application: the apps on it, if it was started for them."""
    _executors: ClassVar[dict[str, SharedExecutors]] = {}
    _turn: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, spark: SparkSession, *, made: bool) -> None:
        self.spark = spark
        self._id = spark.sparkContext.applicationId
        with self._turn:
            self._ours = made or self._id in self._users
            if self._ours:
                self._users[self._id] = self._users.get(self._id, 0) + 1

    @classmethod
    def executors(cls, spark: SparkSession) -> SharedExecutors:
        """The executors of a Spark, the same for all apps on it."""
        with cls._turn:
            key = spark.sparkContext.applicationId
            if key not in cls._executors:
                cls._executors[key] = SharedExecutors(spark)
            return cls._executors[key]

    def give_back(self) -> None:
        """Stop Spark if it was started for apps, and this was the last of them."""
        with self._turn:
            if not self._ours:
                return
            self._ours = False
            self._users[self._id] -= 1
            if self._users[self._id]:
                return
            del self._users[self._id]
            executors = self._executors.pop(self._id, None)
        self.spark.stop()
        if executors is not None:
            executors.stop()

"""What apps on one Spark share: executors by the largest demand, and Spark until the last has ended."""

from collections.abc import Set
from typing import Any

import pytest

from springtide.engine.executors import shared as sharing
from springtide.engine.executors.shared import Lease, SharedExecutors
from springtide.engine.spark.machine import Machine
from springtide.ids import WorkerId
from springtide.migration.errors import Refused


class Spark:
    """As much of a session as sharing needs."""

    def __init__(self, name: str, master: str = "spark://here") -> None:
        self.sparkContext = self
        self.applicationId, self.master = name, master
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


class Executors:
    """Remembers what it was asked."""

    def __init__(self, spark: Any) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.there: frozenset[str] = frozenset()
        self.machines: list[frozenset[str]] = []
        """The executors of each machine that was added."""

    def ask(self, total: int) -> None:
        self.calls.append(("ask", total))

    def dismiss(self, workers: list[str]) -> None:
        self.calls.append(("dismiss", workers))

    def add_machine(self, slots: int, memory_mb: int) -> None:
        self.calls.append(("machine", (slots, memory_mb)))
        self.machines.append(frozenset({str(2 + len(self.machines))}))
        self.added()

    def added(self) -> None:
        """A test may look on."""

    def added_machines(self) -> int:
        return len(self.machines)

    def stop_machines(self, most: int, keep: Set[str]) -> None:
        found = [m for m in reversed(self.machines) if not m & keep][:most]
        self.machines = [m for m in self.machines if m not in found]
        self.calls.append(("stop", len(found)))

    def ids(self) -> frozenset[str]:
        return self.there


def workers(*names: str) -> frozenset[WorkerId]:
    return frozenset(map(WorkerId, names))


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> SharedExecutors:
    monkeypatch.setattr(sharing, "Executors", Executors)
    monkeypatch.setattr(sharing, "executor_files", lambda spark: None)
    return SharedExecutors(Spark("app", "local-cluster[2, 2, 1024]"))  # type: ignore[arg-type]


def calls(shared: SharedExecutors) -> list[tuple[str, Any]]:
    return shared.spark.calls  # type: ignore[attr-defined,no-any-return]


def test_as_many_are_asked_for_as_one_app_wants(shared: SharedExecutors) -> None:
    first, second = shared.join(frozenset), shared.join(frozenset)
    first.ask(2)
    second.ask(3)
    first.ask(1)
    assert calls(shared) == [("ask", 2), ("ask", 3), ("machine", (2, 1024)), ("ask", 3)]


def test_nobody_goes_whom_another_app_employs(shared: SharedExecutors) -> None:
    first, second = shared.join(lambda: workers("1")), shared.join(lambda: workers("2", "3"))
    first.ask(3)
    second.ask(2)
    first.dismiss(workers("2", "4"), 1)
    assert calls(shared)[-3:] == [("ask", 2), ("dismiss", ["4"]), ("stop", 1)]
    first.dismiss(workers("3"), 1)
    assert calls(shared)[-1] == ("ask", 2)


def test_what_was_asked_for_is_given_back_at_once_and_late_comers_go(shared: SharedExecutors) -> None:
    executors: Any = shared.spark
    executors.there = workers("0", "1")
    app = shared.join(lambda: workers("0", "1"))
    app.ask(2)
    before = executors.there
    app.ask(50)
    executors.there |= {"7", "9"}
    app.give_back(2, before)
    stopped = sum(count for what, count in calls(shared) if what == "stop")
    assert stopped == 48, "executors that have not registered go with their machines"
    assert calls(shared)[-1] == ("dismiss", ["9", "7"])
    executors.there = workers("0", "1")
    executors.there |= {"12"}
    app.sweep()
    assert calls(shared)[-1] == ("dismiss", ["12"])
    executors.there = workers("0", "13")
    told = len(calls(shared))
    app.sweep()
    assert calls(shared)[told:] == [], "in place of one that is lost, it is of use"
    app.ask(3)
    executors.there = workers("0", "1", "14", "15")
    app.sweep()
    assert calls(shared)[-1][0] != "dismiss", "they may have come for the next growth"


def test_a_growth_that_is_called_off_while_machines_start_starts_no_more(shared: SharedExecutors) -> None:
    executors: Any = shared.spark
    app = shared.join(lambda: workers("0", "1"))
    app.ask(2)

    def fewer() -> None:
        """As from another thread, which then waits for its turn."""
        if len(executors.machines) == 5:
            app.wanted = 2

    executors.added = fewer
    app.ask(50)
    assert len(executors.machines) == 5
    app.give_back(2, frozenset())
    assert executors.machines == []


def test_machines_are_counted_anew_after_they_were_given_back(
    shared: SharedExecutors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "this_machine", lambda: Machine(1, None))
    app = shared.join(lambda: workers("0", "1"))
    app.ask(6)
    app.check(6)
    app.dismiss((), 2)
    app.check(4)
    with pytest.raises(Refused, match=r"6 workers asked for; this machine \(1 core\) carries at most 4"):
        app.check(6)


def test_a_growth_of_another_app_is_not_swept_up(shared: SharedExecutors) -> None:
    executors: Any = shared.spark
    first, second = shared.join(lambda: workers("0", "1")), shared.join(lambda: workers("0", "1"))
    executors.there = workers("0", "1")
    first.ask(4)
    second.ask(4)
    executors.there |= {"2", "3"}
    told = len(calls(shared))
    first.give_back(2, workers("0", "1"))
    assert [what for what, _ in calls(shared)[told:]] == ["ask"]


def test_an_app_that_ends_takes_along_whom_it_alone_employed(shared: SharedExecutors) -> None:
    first, second = shared.join(lambda: workers("1", "2")), shared.join(lambda: workers("1"))
    first.ask(2)
    second.ask(1)
    first.end()
    assert calls(shared)[-2:] == [("ask", 1), ("dismiss", ["2"])]
    second.end()
    assert calls(shared)[-1] == ("dismiss", ["2"]), "with the last app, Spark itself ends or is left as it is"


def test_spark_stops_with_the_last_app_that_it_was_started_for() -> None:
    spark: Any = Spark("ours")
    first, second = Lease(spark, made=True), Lease(spark, made=False)
    first.give_back()
    first.give_back()
    assert spark.stops == 0
    second.give_back()
    assert spark.stops == 1


def test_a_users_own_spark_is_never_stopped() -> None:
    spark: Any = Spark("theirs")
    for lease in (Lease(spark, made=False), Lease(spark, made=False)):
        lease.give_back()
    assert spark.stops == 0

"""What apps on one Spark share: executors by the largest demand, and Spark until the last has ended."""

from typing import Any

import pytest

from springtide.engine import sharing
from springtide.engine.sharing import Lease, SharedExecutors
from springtide.ids import WorkerId


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

    def ask(self, total: int) -> None:
        self.calls.append(("ask", total))

    def dismiss(self, workers: list[str]) -> None:
        self.calls.append(("dismiss", workers))

    def add_machines(self, count: int, slots: int, memory_mb: int) -> None:
        self.calls.append(("machines", (count, slots, memory_mb)))

    def stop_machines(self) -> None:
        self.calls.append(("stop", None))


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
    assert calls(shared) == [("ask", 2), ("machines", (1, 2, 1024)), ("ask", 3), ("ask", 3)]


def test_nobody_goes_whom_another_app_employs(shared: SharedExecutors) -> None:
    first, second = shared.join(lambda: workers("1")), shared.join(lambda: workers("2", "3"))
    first.ask(3)
    second.ask(2)
    first.dismiss(workers("2", "4"), 1)
    assert calls(shared)[-2:] == [("ask", 2), ("dismiss", ["4"])]
    first.dismiss(workers("3"), 1)
    assert calls(shared)[-1] == ("ask", 2)


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

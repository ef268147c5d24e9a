"""The economy on apps without Spark: who gives way, by how much, and when it ends."""

import math
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from shedding_kit import CAPACITY, CORES, CYCLE_S, ModelApp, Play, calm, one_query, tenant, two_queries
from waiting import wait_until

from springtide.blocks.store import LocalStore
from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.controller import SheddingController
from springtide.control.shed.log import ShedLog, read_shed_log
from springtide.ids import WorkerId
from springtide.migration.errors import Refused
from springtide.plan.worker import Worker


def test_without_reports_nothing_is_done(tmp_path: Path) -> None:
    model = ModelApp(two_queries())
    play = Play(tmp_path, app=model)
    assert play.economy.cycle() is None
    assert (model.calls, read_shed_log(play.stores["app"])) == ([], [])


def test_with_room_for_all_nothing_is_shed(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    assert [*play.cycles(6)][-1]["app"] == {"low": 1.0, "high": 1.0}
    assert not any(model.of("shed"))


def test_the_lower_priority_gives_way_at_once_and_alone(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.rate = 1.05 * CAPACITY
    found = [wanted["app"] for wanted in play.cycles(12)]
    assert found[0]["low"] < 0.7, "in the first cycle that sees it"
    assert all(wanted["high"] == 1.0 for wanted in found), "there is enough for it"
    assert all(0.2 <= wanted["low"] < 1 for wanted in found)


def test_under_more_load_both_give_way_and_neither_falls_below_its_minimum(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.rate = 2 * CAPACITY
    found = [wanted["app"] for wanted in play.cycles(12)]
    assert all(0.2 < wanted["low"] <= 0.22 for wanted in found[1:]), "as near to its minimum as chance allows"
    assert all(0.5 <= wanted["high"] < 1 for wanted in found[1:])
    lags = [report.lag_rows or 0 for report in model.reports if report.ended_at > 60]
    assert max(lags) < 2 * CYCLE_S * model.rate, "what waits arrives in less than two cycles"


def test_after_the_overload_accuracy_rises_step_by_step_to_all(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.rate = 2 * CAPACITY
    low = [wanted["app"]["low"] for wanted in play.cycles(6)][-1]
    model.rate = 0.2 * CAPACITY
    found = [low, *(wanted["app"]["low"] for wanted in play.cycles(10))]
    assert found[-1] == 1.0
    assert all(after - before <= SheddingConfig().rise + 1e-9 for before, after in pairwise(found))
    assert model.of("shed")[-1] == {}, "nothing is left to shed"


def test_of_two_apps_on_one_machine_the_one_of_lower_priority_gives_way(tmp_path: Path) -> None:
    modest, proud = (ModelApp(one_query(0.1, p), rate=200.0) for p in (1, 9))
    modest.beside, proud.beside = [proud], [modest]
    play = Play(tmp_path, modest=modest, proud=proud)
    list(play.cycles(4))
    modest.rate = proud.rate = 1000.0
    for wanted in play.cycles(12):
        assert wanted["proud"]["out"] == 1.0, "there is enough for it, whatever it has to wait for the other now"
        # Of 1.7 cores it takes 1.25, as a fifth of an epoch is planning; the rest is for the other.
        assert wanted["modest"]["out"] == pytest.approx(0.36, abs=0.1)
    assert "modest/out keeps" in read_shed_log(play.stores["modest"])[-1].reasons[0]
    assert not any("modest" in reason for entry in read_shed_log(play.stores["proud"]) for reason in entry.reasons)


def test_equal_priorities_give_way_alike(tmp_path: Path) -> None:
    model = ModelApp(two_queries(0.2, 0.2, (0, 0)), rate=0.3 * CAPACITY)
    play = Play(tmp_path, app=model)
    list(play.cycles(4))
    model.rate = 1.5 * CAPACITY
    for wanted in play.cycles(8):
        assert wanted["app"]["low"] == pytest.approx(wanted["app"]["high"], abs=0.02)


@pytest.mark.parametrize("target", ["2", "full"])
def test_minima_that_do_not_fit_a_worker_move_an_instance_to_another(tmp_path: Path, target: str) -> None:
    workers = (Worker(WorkerId("1"), slots=CORES), Worker(WorkerId(target), slots=CORES))
    model = ModelApp(two_queries(0.7, 0.7), rate=0.3 * CAPACITY, workers=workers)
    play = Play(tmp_path, app=model)
    list(play.cycles(3))
    model.rate = 1.3 * CAPACITY
    list(play.cycles(2))
    assert set(model.of("move")) == {("count-low", target)}, "the lower priority moves"
    told = [reason for entry in read_shed_log(play.stores["app"]) for reason in entry.reasons]
    assert any(("refused: no room" in reason) == (target == "full") for reason in told if "moves from" in reason)


def test_a_decision_that_fails_is_noted_and_the_loop_goes_on(tmp_path: Path) -> None:
    model = ModelApp(two_queries(), rate=0.3 * CAPACITY)
    model.run(30.0)
    reports, model.reports = model.reports, None  # type: ignore[assignment]
    economy, store = SheddingController(SheddingConfig(cycle_s=0.01)), LocalStore(tmp_path)
    economy.join(tenant(model), ShedLog(store))
    try:
        wait_until("the mistake in the log", lambda: "could not decide: TypeError" in str(read_shed_log(store)), 20.0)
        model.reports = reports
        wait_until("a limit", lambda: bool(model.of("admit")), 20.0)
    finally:
        economy.leave("app")
    assert not any(thread.name == "springtide-shedding" for thread in threading.enumerate())


def test_cycles_run_as_long_as_somebody_may_shed(tmp_path: Path) -> None:
    economy = SheddingController(SheddingConfig(cycle_s=60.0))

    def running() -> bool:
        return any(thread.name == "springtide-shedding" for thread in threading.enumerate())

    economy.join(tenant(ModelApp(one_query(1.0, 0)), "firm"), ShedLog(LocalStore(tmp_path / "firm")))
    assert not running()
    economy.join(tenant(ModelApp(one_query(0.5, 0)), "soft"), ShedLog(LocalStore(tmp_path / "soft")))
    assert running()
    economy.leave("soft")
    assert not running()
    economy.leave("firm")


@pytest.mark.parametrize(
    "name", ["cycle_s", "look_s", "epoch_s", "longest_s", "utilisation", "catch_up_cycles", "rise"]
)
def test_a_bad_setting_is_named(name: str) -> None:
    with pytest.raises(Refused, match=name):
        SheddingConfig(**{name: 0.0})


def test_on_the_way_up_no_query_overtakes_one_of_higher_priority(tmp_path: Path) -> None:
    graph = two_queries(low=0.5, high=0.1)
    model = ModelApp(graph, rate=0.3 * CAPACITY)
    play = Play(tmp_path, app=model)
    list(play.cycles(4))
    model.rate = 4 * CAPACITY
    assert [*play.cycles(6)][-1]["app"]["low"] > [*play.cycles(1)][-1]["app"]["high"], "its minimum is higher"
    model.rate = 0.2 * CAPACITY
    found = [wanted["app"] for wanted in play.cycles(12)]
    assert all(wanted["low"] <= max(0.56, wanted["high"]) for wanted in found)
    assert found[-1] == {"low": 1.0, "high": 1.0}


def test_a_query_near_its_minimum_does_not_stay_below_what_chance_asks_for(tmp_path: Path) -> None:
    model = ModelApp(two_queries(0.4, 0.6, (0, 0)), rate=0.3 * CAPACITY)
    play = Play(tmp_path, app=model)
    list(play.cycles(4))
    # The fewer rows, the more room chance needs; and the change is too small to be worth it otherwise.
    for share in (6.0, 5.0, 4.0, 3.5, 3.0):
        model.rate = share * CAPACITY
        wanted = [*play.cycles(3)][-1]["app"]
        rows = sum(report.rows_in for report in model.reports if report.ended_at > play.now - CYCLE_S)
        # Which epochs make up a cycle is not the same for both: a tenth more or less.
        assert wanted["low"] >= 0.4 + 0.9 * 3 * math.sqrt(0.24 / rows)
        assert wanted["high"] >= 0.6 + 0.9 * 3 * math.sqrt(0.24 / rows)


def test_an_app_that_joins_while_the_last_one_leaves_has_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that was told to end has not looked yet when the next one starts."""
    economy = SheddingController(SheddingConfig(cycle_s=600.0, look_s=0.05))
    model = ModelApp(two_queries())
    looking = threading.Event()
    monkeypatch.setattr("springtide.control.shed.controller.let_go", lambda thread: looking.set())
    economy.join(tenant(model), ShedLog(LocalStore(tmp_path)))
    economy.leave("app")
    economy.join(tenant(model), ShedLog(LocalStore(tmp_path)))
    assert looking.is_set()

    def running() -> int:
        return sum(thread.name == "springtide-shedding" for thread in threading.enumerate())

    wait_until("one thread", lambda: running() == 1, 20.0)
    economy.leave("app")
    wait_until("no thread", lambda: running() == 0, 20.0)

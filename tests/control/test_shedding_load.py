"""The economy on apps without Spark: what epochs cost, how a load is met that jumps, stays, or is too much."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from shedding_kit import CAPACITY, CORES, CYCLE_S, ModelApp, Play, calm, one_query, two_queries

from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.controller import FEWEST
from springtide.control.shed.log import read_shed_log
from springtide.control.shed.offer import MARGIN
from springtide.ids import PlanVersion, WorkerId
from springtide.migration.state import MigrationState
from springtide.plan.worker import Worker


def test_the_first_cold_epochs_do_not_make_an_app_seem_slow(tmp_path: Path) -> None:
    model = ModelApp(two_queries(), rate=0.3 * CAPACITY, fixed_s=12.0)
    play = Play(tmp_path, app=model)
    model.run(30.0)
    model.fixed_s, play.now = 0.3, 35.0
    found = [wanted["app"] for wanted in play.cycles(5)]
    assert found[-1] == {"low": 1.0, "high": 1.0}
    offer = play.tenants["app"].observe(SheddingConfig(cycle_s=CYCLE_S))
    assert offer is not None
    assert offer.cost.pace.fixed_s == pytest.approx(0.3, abs=0.1)


def test_what_a_step_takes_in_every_epoch_is_not_held_against_its_rows(tmp_path: Path) -> None:
    """From next to nothing to half of what the app can do: that is no reason to shed, nor for tiny epochs."""
    model = ModelApp(two_queries(), rate=30.0, cost_s=0.0006, beside_s=0.2, fixed_s=0.5)
    play = Play(tmp_path, app=model)
    list(play.cycles(5))
    model.rate = 550.0
    found = [wanted["app"] for wanted in play.cycles(10)]
    assert all(wanted == {"low": 1.0, "high": 1.0} for wanted in found)
    assert min(rows["rows"] for rows in model.of("admit")[-8:]) > SheddingConfig().epoch_s * model.rate


def test_where_the_minima_do_not_fit_rows_wait_and_the_read_limits_follow_the_true_rate(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.rate = 6 * CAPACITY
    found = [wanted["app"] for wanted in play.cycles(10)]
    assert found[-1] == {"low": pytest.approx(0.21, abs=0.01), "high": pytest.approx(0.515, abs=0.015)}
    # A row costs 0.7 ms now, on two cores; epochs may take two cycles, as rows wait anyway.
    limits = [rows["rows"] for rows in model.of("admit")[-4:]]
    assert all(CYCLE_S < limit * 0.0007 / CORES < 2 * CYCLE_S for limit in limits)
    assert all(report.phases.total_s < 2 * CYCLE_S for report in model.reports)


def test_what_the_minima_do_not_leave_room_for_is_foretold(tmp_path: Path) -> None:
    """The lag grows by what is missing; and it is told in the log of decisions and in that of the process."""
    play, model = calm(tmp_path)
    model.shed_s = 0.00002
    model.rate = 4 * CAPACITY
    list(play.cycles(8))
    began, lag = model.now, model.lag
    list(play.cycles(20))
    entry = read_shed_log(play.stores["app"])[-1]
    assert entry.missing == pytest.approx((model.lag - lag) / (model.now - began), rel=0.05)
    assert entry.comes == pytest.approx(model.rate, rel=0.01)
    assert entry.allowed == pytest.approx(entry.comes - entry.missing)
    assert "the minimum accuracies leave room for" in entry.reasons[0]
    model.rate = 0.2 * CAPACITY
    list(play.cycles(2))
    assert read_shed_log(play.stores["app"])[-1].missing == 0.0


def test_a_shortage_is_told_in_the_log_of_the_process_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    play, model = calm(tmp_path)
    model.rate = 4 * CAPACITY
    with caplog.at_level("INFO", logger="springtide"):
        list(play.cycles(6))
        model.rate = 0.2 * CAPACITY
        list(play.cycles(2))
    told = [record.getMessage() for record in caplog.records if "minimum accuracies" in record.getMessage()]
    assert [("have to wait" in line) for line in told] == [True, False]


def test_with_the_minima_held_epochs_are_short(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.rate = 1.5 * CAPACITY
    list(play.cycles(10))
    config = SheddingConfig()
    assert max(report.phases.total_s for report in model.reports) <= config.longest_s, "even when the load jumps"
    late = [report for report in model.reports if report.ended_at > play.now - 25]
    assert max(report.phases.total_s for report in late) <= config.epoch_s
    assert max(report.lag_rows or 0 for report in late) < 2 * config.epoch_s * model.rate


def test_the_limit_of_an_idle_app_leaves_room_for_a_load_that_jumps(tmp_path: Path) -> None:
    """What a row costs is not well known then; a limit that is too low makes a backlog, and that looks like load."""
    model = ModelApp(two_queries(), rate=30.0, cost_s=0.0006, beside_s=0.1, fixed_s=0.5)
    play = Play(tmp_path, app=model)
    list(play.cycles(5))
    assert model.of("admit")[-1]["rows"] > 400


@pytest.mark.parametrize(("fixed_s", "peak"), [(0.6, 1.4), (1.5, 1.3), (1.5, 1.45)])
def test_a_load_at_the_edge_of_what_the_minima_allow_is_held(tmp_path: Path, fixed_s: float, peak: float) -> None:
    """With half of all rows kept, epochs of the usual length are too short for it, and longer ones are not."""
    model = ModelApp(two_queries(0.4, 0.6, (0, 0)), rate=0.3 * CAPACITY, fixed_s=fixed_s)
    play = Play(tmp_path, app=model)
    list(play.cycles(4))
    for tenth in range(3, 1 + round(10 * peak)):
        model.rate = tenth / 10 * CAPACITY
        list(play.cycles(1))
    model.rate = peak * CAPACITY
    list(play.cycles(40))
    late = [report for report in model.reports if report.ended_at > play.now - 30]
    assert play.tenants["app"].accuracy == pytest.approx({"low": 0.41, "high": 0.61}, abs=0.02)
    waiting = max(report.lag_rows or 0 for report in late)
    assert waiting < 2 * CYCLE_S * model.rate, "less than two cycles of arrivals wait"


def test_after_a_moment_in_which_the_machine_was_busy_elsewhere_rows_are_taken_again(tmp_path: Path) -> None:
    """Long epochs with a little more work than others: rows must not seem so dear that hardly any are taken."""
    model = ModelApp(two_queries(0.4, 0.6, (0, 0)), rate=60.0, cost_s=0.0008, fixed_s=0.8)
    play = Play(tmp_path, app=model)
    list(play.cycles(3))
    model.rate = 250.0
    list(play.cycles(1))
    model.admit({"rows": 420})
    model.cost_s = 0.0016
    for model.fixed_s in (4.0, 9.0, 4.5):
        model.run(model.now + 0.1)
    model.rate, model.cost_s, model.fixed_s, play.now = 700.0, 0.0008, 0.8, model.now
    list(play.cycles(2))
    assert model.lag < CYCLE_S * model.rate


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
def test_a_load_that_stays_is_met_by_accuracies_that_stay(tmp_path: Path, noise: float) -> None:
    """However much epochs vary in length: from one cycle to the next accuracies move by less than 0.02."""
    play, model = calm(tmp_path)
    random = Random(7)
    model.noise = lambda: max(0.7, random.gauss(1.0, noise))
    model.rate = 1.5 * CAPACITY
    found = [wanted["app"] for wanted in play.cycles(40)][4:]
    for query in ("low", "high"):
        assert max(abs(b[query] - a[query]) for a, b in pairwise(found)) < 0.02
    late = [report for report in model.reports if report.ended_at > 60]
    assert max(report.lag_rows or 0 for report in late) < CYCLE_S * model.rate, "and the app keeps up"


def test_a_load_that_jumps_is_met_at_once(tmp_path: Path) -> None:
    """Within the cycle in which it jumps, and not at the end of the next one."""
    play, model = calm(tmp_path)
    play.economy.look()
    jumped_at = play.now
    model.rate = 1.6 * CAPACITY
    while play.tenants["app"].accuracy["low"] == 1.0:
        play.now += 1.0
        model.run(play.now)
        play.economy.look()
        assert play.now <= jumped_at + CYCLE_S
    assert play.now < jumped_at + CYCLE_S, "a cycle was due then anyway"
    accuracy = play.tenants["app"].accuracy["low"]
    assert accuracy == pytest.approx(0.22, abs=0.02), "as far as it takes"


def test_nothing_is_decided_between_two_cycles_under_the_same_load(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    assert play.economy.look() is None
    play.now += CYCLE_S
    model.run(play.now)
    assert play.economy.look() is not None


def test_more_costly_rows_and_fewer_cores_are_seen_too(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.share = 0.2
    assert [wanted["app"] for wanted in play.cycles(6)][-1]["low"] < 1


def test_the_limit_of_a_source_is_never_tiny(tmp_path: Path) -> None:
    play, model = calm(tmp_path)
    model.cost_s = 0.5
    list(play.cycles(8))
    assert min(rows["rows"] for rows in model.of("admit")) >= FEWEST


def test_an_app_that_keeps_up_does_not_begin_to_shed_because_of_the_margin(tmp_path: Path) -> None:
    """The load stays, and rows become a little dearer: more than is planned for, and less than there is."""
    play, model = calm(tmp_path)
    model.rate = 0.65 * CAPACITY
    assert [*play.cycles(8)][-1]["app"] == {"low": 1.0, "high": 1.0}
    model.cost_s *= 1.1
    assert all(wanted["app"] == {"low": 1.0, "high": 1.0} for wanted in play.cycles(20))
    assert model.lag < CYCLE_S * model.rate
    model.cost_s *= 1.5
    assert [*play.cycles(20)][-1]["app"]["low"] < 1, "that is more than there is"


def test_an_app_that_keeps_up_does_not_begin_to_shed_whatever_is_reckoned(tmp_path: Path) -> None:
    """Its work takes more time than all cores have, as most of it is waiting: the sums say that it can't keep up."""
    model = ModelApp(two_queries(), rate=1.2 * CAPACITY, share=2.0)
    play = Play(tmp_path, app=model)
    assert all(wanted["app"] == {"low": 1.0, "high": 1.0} for wanted in play.cycles(10))
    assert model.lag < CYCLE_S * model.rate
    model.share = 1.0
    assert [*play.cycles(4)][-1]["app"]["low"] < 1, "now it does not keep up"


def test_an_app_of_steady_load_gives_way_to_one_whose_load_rises(tmp_path: Path) -> None:
    dear, cheap = ModelApp(one_query(0.5, 5), rate=0.3 * CAPACITY), ModelApp(one_query(0.1, 1), rate=0.3 * CAPACITY)
    dear.beside, cheap.beside = [cheap], [dear]
    play = Play(tmp_path, dear=dear, cheap=cheap)
    list(play.cycles(6))
    for _ in range(12):
        dear.rate = min(1.9 * CAPACITY, 1.25 * dear.rate)
        last = [*play.cycles(1)][-1]
    assert last["cheap"]["out"] < 1
    assert last["dear"]["out"] > last["cheap"]["out"]


@pytest.mark.parametrize("load", [0.62, 0.66, 0.68])
def test_on_the_way_up_an_accuracy_is_not_held_where_it_is(tmp_path: Path, load: float) -> None:
    """After an overload there is room for all, if not much more: all are processed again within three cycles."""
    play, model = calm(tmp_path)
    model.rate = 1.5 * CAPACITY
    assert [*play.cycles(6)][-1]["app"]["low"] < 0.3
    model.rate = load * CAPACITY
    assert [*play.cycles(3)][-1]["app"] == {"low": 1.0, "high": 1.0}


def test_a_decision_that_was_made_in_a_bad_moment_does_not_stay(tmp_path: Path) -> None:
    """Rows were dear for a moment, just when the load changed: what was decided then is put right soon."""
    after: dict[str, list[float]] = {}
    for name, dear in (("disturbed", 3.0), ("calm", 1.0)):
        play, model = calm(tmp_path / name)
        model.rate, cost_s = 0.9 * CAPACITY, model.cost_s
        model.cost_s *= dear
        list(play.cycles(1))
        model.cost_s = cost_s
        after[name] = [wanted["app"]["low"] for wanted in play.cycles(8)]
    assert min(after["disturbed"]) < 0.3, "it was a bad moment"
    assert after["disturbed"][-1] == pytest.approx(after["calm"][-1], abs=0.1)


@pytest.mark.parametrize("moved", [False, True])
def test_when_instances_have_moved_accuracies_are_set_anew_though_the_load_stays(tmp_path: Path, moved: bool) -> None:
    """Under another plan rows cost more: whoever has to gives way at once, and not little by little."""
    play, model = calm(tmp_path)
    model.rate = 0.9 * CAPACITY
    before = [*play.cycles(6)][-1]["app"]["low"]
    model.cost_s *= 1.2
    if moved:
        model.plan = replace(model.plan, version=PlanVersion(2))
    after = [*play.cycles(1)][-1]["app"]["low"]
    assert (before - after > 0.05) == moved


def test_workers_that_have_no_rows_yet_are_no_reason_to_shed_more(tmp_path: Path) -> None:
    """They do not idle: their rows come when they have the state."""
    workers = tuple(Worker(WorkerId(name), CORES) for name in ("0", "1", "2"))
    found = []
    for newcomers in ((), ("1", "2")):
        model = ModelApp(one_query(0.1, 0), rate=2.5 * CAPACITY, workers=workers)
        play = Play(tmp_path / str(len(newcomers)), app=model)
        list(play.cycles(6))
        model.plan, model.newcomers = replace(model.plan, version=PlanVersion(2)), newcomers
        found += [wanted["app"]["out"] for wanted in play.cycles(1)]
    assert 0.2 < found[0] < 0.8, "there is too much to do"
    assert found[1] == found[0]


def test_while_an_app_migrates_the_others_leave_it_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be told of it then: that is no reason to take it for an app that is not there."""
    modest, proud = (ModelApp(one_query(0.1, p), rate=1000.0) for p in (1, 9))
    modest.beside, proud.beside = [proud], [modest]
    play = Play(tmp_path, modest=modest, proud=proud)
    before = [*play.cycles(8)][-1]
    assert before["modest"]["out"] < 0.6
    monkeypatch.setattr(play.tenants["proud"], "observe", lambda config: None)
    for wanted in play.cycles(6):
        assert wanted["modest"]["out"] == pytest.approx(before["modest"]["out"], abs=0.1)
        assert wanted["proud"] == before["proud"], "nobody decides about it"


@pytest.mark.parametrize("seen", [True, False])
def test_who_is_where_an_instance_moves_to_makes_room_at_once_and_until_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """While it migrates it is seen where it was, or not at all. It must not find a lower priority in its place."""
    play, proud = _proud_and_modest(tmp_path)
    while not proud.of("move"):
        list(play.cycles(1))
        assert play.now < 100
    assert play.tenants["modest"].accuracy["out"] < 0.3, "its own load is steady, and it gives way at once"
    if not seen:
        monkeypatch.setattr(play.tenants["proud"], "observe", lambda config: None)
    assert max(wanted["modest"]["out"] for wanted in play.cycles(5)) < 0.3


def test_what_is_known_of_a_task_that_moves_holds_for_however_many_instances(tmp_path: Path) -> None:
    """Half of its slices have moved: for that time it has other instances. A row costs what it cost."""
    play, proud = _proud_and_modest(tmp_path)
    while not proud.of("move"):
        list(play.cycles(1))
    step, _ = proud.of("move")[0]
    before = play.economy._memory.row_cpu[f"proud/{step}"]
    proud.instances, proud.rate = 1, 0.8 * proud.rate
    proud.plan = replace(proud.plan, version=PlanVersion(2))
    list(play.cycles(3))
    assert play.economy._memory.row_cpu[f"proud/{step}"] == pytest.approx(before, rel=0.05)


def test_what_moves_is_on_its_way_until_an_epoch_has_shown_it_in_its_new_place(tmp_path: Path) -> None:
    play, proud = _proud_and_modest(tmp_path)
    tenant = play.tenants["proud"]
    assert not tenant.moving
    while not proud.of("move"):
        list(play.cycles(1))
    assert tenant.moving
    proud.plan = replace(proud.plan, version=PlanVersion(2))
    proud.migrations[-1].end(MigrationState.DONE)
    assert tenant.moving, "the last epoch ran under the plan before"
    proud.run(proud.now + CYCLE_S)
    assert not tenant.moving


def _proud_and_modest(place: Path) -> tuple[Play, ModelApp]:
    """Two apps of steady load on a worker each; then that of the proud one becomes too much for its worker."""
    one, two = (Worker(WorkerId(name), slots=CORES) for name in "12")
    proud = ModelApp(two_queries(0.7, 0.7, (8, 9)), rate=0.3 * CAPACITY, workers=(one, two))
    modest = ModelApp(one_query(0.2, 1), rate=0.9 * CAPACITY, workers=(two, one))
    play = Play(place, proud=proud, modest=modest)
    list(play.cycles(4))
    assert play.tenants["modest"].accuracy["out"] > 0.9
    proud.rate = 1.3 * CAPACITY
    return play, proud


def test_on_the_way_up_an_app_waits_for_one_of_higher_priority_until_that_has_risen(tmp_path: Path) -> None:
    """Epochs of two apps do not begin together: the long ones of the one may still shed what it may keep by now."""
    modest, proud = (ModelApp(one_query(0.1, p), rate=3 * CAPACITY) for p in (1, 9))
    modest.beside, proud.beside = [proud], [modest]
    play = Play(tmp_path, modest=modest, proud=proud)
    before = [*play.cycles(8)][-1]
    assert before["proud"]["out"] < 0.6
    modest.rate = proud.rate = 0.2 * CAPACITY
    found = [before, *play.cycles(8)]
    for earlier, later in pairwise(found):
        assert later["modest"]["out"] <= max(earlier["proud"]["out"], 0.1 + MARGIN)
    assert found[-1] == {"modest": {"out": 1.0}, "proud": {"out": 1.0}}

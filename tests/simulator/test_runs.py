"""Runs: rows are conserved, migrations and losses do what the engine does, the same seed gives the same story."""

from statistics import median

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_kit import balanced, details, run, small

from springtide.simulator.model.arrivals import Arrivals
from springtide.simulator.model.elastic import Elastic
from springtide.simulator.report.books import Books
from springtide.simulator.report.story import FAILURE, MIGRATION, RECOVERY, Story
from springtide.simulator.scenario.scenario import Scenario

STRATEGIES = ("handover", "progressive", "partial_pause", "lazy")


def scenario_with(tables: str, seed: int = 7, replicas: int = 1) -> Scenario:
    return small(
        tables, **{"seed = 7": f"seed = {seed}", "slices = 64": f"slices = 64\nreplicas = {replicas}\ndurable_s = 20"}
    )


@settings(max_examples=40, deadline=None)
@given(
    strategy=st.sampled_from(STRATEGIES),
    stop=st.booleans(),
    steps=st.dictionaries(st.integers(0, 9), st.integers(1, 12), max_size=4),
    outages=st.lists(st.tuples(st.floats(1, 110), st.integers(1, 4), st.integers(1, 2)), max_size=3),
    replicas=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
def test_no_row_is_lost_or_doubled_whatever_moves_and_fails(
    strategy: str,
    stop: bool,
    steps: dict[int, int],
    outages: list[tuple[float, int, int]],
    replicas: int,
    seed: int,
) -> None:
    listed = ", ".join(f"{{ at_s = {at}, workers = {n}, every = {every} }}" for at, n, every in outages)
    tables = f"[migration]\nstrategy = '{strategy}'\n[failures]\noutages = [{listed}]\n"
    if stop:
        tables = tables.replace("[failures]", "stop_restart_s = 3\n[failures]")
    done = run(scenario_with(tables, seed, replicas), steps)
    assert balanced(done)
    assert done.totals.processed > 0


def test_the_same_seed_gives_the_same_story_and_another_one_another() -> None:
    tables = "[failures]\nmean_h = 0.05\n"
    first, again, other = (run(scenario_with(tables, seed), {2: 7}).to_json() for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_workers_come_and_take_their_share(strategy: str) -> None:
    done = run(scenario_with(f"[migration]\nstrategy = '{strategy}'\n"), {1: 8})
    (seconds,), (outcome,) = details(done, MIGRATION, "seconds"), details(done, MIGRATION, "outcome")
    assert outcome == "done"
    assert seconds >= 7, "they start and get warm first"
    assert done.summary.workers == 8
    assert (done.summary.steps_up, done.summary.steps_down) == (1, 0)
    assert balanced(done)


def test_progressive_flips_a_few_slices_an_epoch() -> None:
    slow, fast = (
        details(run(scenario_with(f"[migration]\nslices_an_epoch = {k}\n"), {1: 8}), MIGRATION, "seconds")[0]
        for k in (2, 64)
    )
    assert slow - fast > 20, "64 moves, two a second, against all at once"


def test_copies_take_as_long_as_the_network_needs() -> None:
    scenarios = (small(**{"warm_up_s = 2": f"warm_up_s = 2\nbandwidth_mb_s = {mb}"}) for mb in (1000, 0.1))
    quick, slow = (details(run(scenario, {1: 8}), MIGRATION, "phases")[0] for scenario in scenarios)
    assert quick["moving"] - quick["copying"] < 2
    assert slow["moving"] - slow["copying"] > 8


def test_to_stop_and_restart_is_a_pause_that_the_others_do_not_take() -> None:
    live, stopped = (run(scenario_with(tables), {1: 8}) for tables in ("", "[migration]\nstop_restart_s = 30\n"))
    assert live.summary.most_lag_s < 5
    assert stopped.summary.most_lag_s > 20


def test_the_slowest_worker_makes_an_epoch() -> None:
    even, skewed = run(small()), run(small(**{"service_us = 50": "service_us = 50\nskew = 2.0"}))
    overhead_s = 0.2
    assert median(skewed.epochs_s) - overhead_s > 1.5 * (median(even.epochs_s) - overhead_s)


@settings(max_examples=20, deadline=None)
@given(lost=st.integers(1, 6), seed=st.integers(0, 100))
def test_every_other_worker_may_be_lost_with_one_replica(lost: int, seed: int) -> None:
    tables = f"[failures]\noutages = [{{ at_s = 40.5, workers = {lost}, every = 2 }}]\n"
    done = run(small(tables, **{"workers = 4": "workers = 12", "seed = 7": f"seed = {seed}"}))
    assert details(done, FAILURE, "workers") == [lost]
    assert details(done, RECOVERY, "went_back") == [0]
    assert done.summary.repeated_rows == 0
    assert done.summary.workers == 12, "others came in their place"
    assert balanced(done)


def test_neighbours_lost_together_need_as_many_replicas_or_the_durable_checkpoint() -> None:
    tables = "[failures]\noutages = [{ at_s = 55.5, workers = 2 }]\n"
    back, whole = (run(scenario_with(tables, replicas=r)) for r in (1, 2))
    assert (back.summary.went_back, whole.summary.went_back) == (1, 0)
    assert back.summary.repeated_rows > 0 == whole.summary.repeated_rows
    assert balanced(back)
    assert balanced(whole)


def test_a_copy_that_is_not_whole_yet_takes_nothing_over() -> None:
    outages = "[failures]\noutages = [{ at_s = 40, workers = 2, every = 2 }, { at_s = 44, workers = 2, every = 1 }]\n"
    slow = small(outages, **{"warm_up_s = 2": "warm_up_s = 60\nbandwidth_mb_s = 0.05", "workers = 4": "workers = 6"})
    assert run(slow).summary.went_back >= 1


def test_every_slice_has_a_living_owner_after_a_loss() -> None:
    scenario = small(**{"workers = 4": "workers = 12"})
    rng = np.random.default_rng(3)
    env = simpy.Environment()
    books = Books({s.name: Arrivals(s.profile, 60, rng) for s in scenario.sources}, scenario.operators)
    plant = Elastic(env, scenario, books, Story("small", "none"), rng)
    env.run(20)
    gone = plant.placement.ring.workers[::2]
    heirs = {w: plant.placement.ring.backups(w, 1)[0] for w in gone}
    before = {name: owner.copy() for name, owner in plant.placement.owner.items()}
    plant.healer.lose(gone)
    assert plant.healer.heal() == (0.0, False)
    number = plant.placement.number
    for name, owner in plant.placement.owner.items():
        for slice_id, (was, now) in enumerate(zip(before[name], owner, strict=True)):
            worker = plant.placement.workers[was].id
            assert now == number[heirs.get(worker, worker)], f"slice {slice_id} of {name}"

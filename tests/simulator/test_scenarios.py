"""The shipped scenarios show what they are for."""

from dataclasses import replace

import pytest
from simulator_kit import balanced

from springtide.simulator.scenario.policy import choose
from springtide.simulator.scenario.shipped import find
from springtide.simulator.simulate import Run, simulate


def runs(name: str) -> dict[tuple[str, str], Run]:
    """By variant and policy."""
    return {
        (scenario.name.partition(" ")[2], policy): simulate(scenario, policy, choose(policy, scenario.control))
        for scenario in find(name)
        for policy in scenario.control.policies
    }


def test_ds2_needs_a_step_where_dhalion_needs_six_or_more() -> None:
    found = runs("ds2-dhalion-heron")
    ds2, dhalion = found["", "ds2"].summary, found["", "dhalion"].summary
    assert 1 <= ds2.steps_up <= 3
    assert dhalion.steps_up >= 6
    assert (ds2.steps_down, dhalion.steps_down) == (0, 0)
    assert ds2.stable_s is not None
    assert dhalion.stable_s is not None
    assert 10 * ds2.stable_s < dhalion.stable_s
    assert found["", "ds2"].story.samples[-1].parallelism == {"split": 10, "count": 20}
    assert all(balanced(run) for run in found.values())


def test_ds2_follows_a_rate_that_halves() -> None:
    found = runs("ds2-dhalion-flink")
    ds2 = found["", "ds2"]
    assert (ds2.summary.steps_up, ds2.summary.steps_down) == (2, 1)
    assert 800 < ds2.story.steps("down")[0].at_s <= 803
    assert found["", "dhalion"].summary.steps_up >= 6
    assert all(balanced(run) for run in found.values())


def test_recovery_does_not_take_longer_with_more_losses() -> None:
    found = {variant: run.summary for (variant, _), run in runs("floe-recovery").items()}
    one, half = found["1 of 12"].recovery_s, found["6 of 12"].recovery_s
    assert one is not None
    assert half is not None
    assert half <= 1.5 * one
    assert {variant for variant, summary in found.items() if summary.went_back} == {"2 neighbours"}
    assert all(summary.lost == summary.doubled == 0 for summary in found.values())


def test_online_deployment_saves_traffic_between_hosts() -> None:
    found = runs("otd-scale")
    for hosts in (2, 4, 8, 16):
        none, otd = (found[f"{hosts} hosts", policy].summary for policy in ("none", "otd"))
        assert otd.remote < none.remote / 4
        assert otd.busy < none.busy
        assert otd.rebalances > 0


@pytest.mark.timeout(120)
def test_a_day_of_many_workers_in_small() -> None:
    (day,) = find("day-of-10000")
    profile = day.sources[0].profile
    shape = replace(profile.shape, mean=profile.shape.mean / 100, amplitude=profile.shape.amplitude / 100)
    small = replace(
        day,
        sources=(replace(day.sources[0], profile=replace(profile, shape=shape)),),
        cluster=replace(day.cluster, workers=40),
        state=replace(day.state, slices=10_000),
        failures=replace(day.failures, mean_h=100.0),
        flow=replace(day.flow, most_rows=80_000_000),
    )
    run = simulate(small, "ds2", choose("ds2", day.control))
    assert balanced(run)
    assert run.summary.failures > 5
    assert run.summary.steps_up >= 4
    assert run.summary.steps_down >= 4
    assert run.summary.most_lag_s < 900
    assert max(sample.workers for sample in run.story.samples) > 80

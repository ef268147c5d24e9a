"""Scenarios: what is wrong is named, with what was expected and what came."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from simulator_kit import SMALL, small

from springtide.simulator.model.arrivals import Arrivals, Sine
from springtide.simulator.scenario.fields import BadScenario
from springtide.simulator.scenario.policy import choose
from springtide.simulator.scenario.read import read
from springtide.simulator.scenario.shipped import find, shipped


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("duration_s = 120", "", "duration_s: expected a number, got nothing"),
        ("duration_s = 120", "duration_s = 0", "duration_s: expected a number above 0, got 0.0"),
        ("seed = 7", "seed = 7.5", "seed: expected a whole number of 0 or more, got 7.5"),
        ("seed = 7", "seeds = 7", "seeds: expected only the keys"),
        ("overhead_s = 0.2", "kind = 'stream'", "flow.kind: expected one of 'epochs', 'pipeline', got 'stream'"),
        ('kind = "constant"', 'kind = "sine"', r"sources\[0\].rate.mean: expected a number, got nothing"),
        ("rows_per_s = 2000", "rows_per_s = '2000'", r"sources\[0\].rate.rows_per_s: expected a number of 0 or more"),
        ("rows_per_s = 2000", "rows_per_s = nan", r"rows_per_s: expected a number of 0 or more, got nan"),
        ("rows_per_s = 2000", "rows_per_s = true", r"rows_per_s: expected a number of 0 or more, got True"),
        ('from = ["split"]', 'from = ["words"]', r"operators\[1\].from: expected sources and operators told before it"),
        ('name = "count"', 'name = "split"', r"operators\[1\].name: expected a name that no other"),
        ('name = "count"', 'name = "a b"', r"operators\[1\].name: expected letters, digits"),
        ("workers = 4", "workers = 65", "cluster.workers: expected 1 to 64, one slice each, got 65"),
        ("workers = 4", "", "cluster.workers: expected a whole number, got nothing"),
        ("[state]", "[migration]\nstrategy = 'hop'\n[state]", "migration.strategy: expected one of 'handover'"),
        (
            "[state]",
            "[migration]\nstrategy = 'lazy'\nslices_an_epoch = 3\n[state]",
            "migration: expected options that go together",
        ),
        ("[flow]", "[flow]\nkind = 'pipeline'", "migration.stop_restart_s: expected a number, as a pipeline stops"),
        ('policies = ["none"]', "policies = []", "control.policies: expected a list of one text or more"),
        ("[flow]", "[flow", "small: expected TOML, got"),
    ],
)
def test_a_bad_scenario_is_refused_by_its_key(old: str, new: str, says: str) -> None:
    assert old in SMALL
    with pytest.raises(BadScenario, match=says) as refused:
        read(SMALL.replace(old, new), "small")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    ("control", "says"),
    [
        ('policies = ["ds3"]', "expected policies of dhalion, ds2, otd, skew, threshold, none, got 'ds3'"),
        ('policies = ["otd"]\notd = { hue = 1 }', "control.otd.hue: expected only the keys"),
        ('policies = ["otd"]\notd = { cpu_low = 2 }', "control.otd: expected options .* got 'cpu_low"),
        ('policies = ["ds2"]\nstability = { band = 2 }', "control.stability: expected options .* got 'band"),
        ('policies = ["ds2"]\nstability = { bands = 2 }', "control.stability.bands: expected only the keys"),
    ],
)
def test_bad_options_of_a_policy_are_refused(control: str, says: str) -> None:
    scenario = small(**{'policies = ["none"]': control})
    with pytest.raises(BadScenario, match=says):
        choose(scenario.control.policies[0], scenario.control)


def test_steps_of_a_rate_begin_with_0_and_rise() -> None:
    for steps in ("[[1, 5]]", "[[0, 5], [0, 6]]", "[]", "[[0]]", "[[0, -1]]"):
        with pytest.raises(BadScenario, match=r"sources\[0\].rate.steps"):
            small(**{'kind = "constant", rows_per_s = 2000': f'kind = "steps", steps = {steps}'})


def test_variants_change_what_they_name() -> None:
    text = (
        SMALL
        + """
[[variants]]
name = "two"
cluster.workers = 2

[[variants]]
name = "fast"
sources = [{ name = "lines", rate = { rows_per_s = 9 } }]
"""
    )
    two, fast = read(text, "small")
    assert (two.name, two.cluster.workers, two.cluster.slots) == ("small two", 2, 2)
    assert (fast.cluster.workers, fast.sources[0].profile.shape.rows_per_s) == (4, 9)


def test_every_shipped_scenario_can_be_read_and_its_policies_chosen() -> None:
    assert set(shipped()) == {"ds2-dhalion-heron", "ds2-dhalion-flink", "floe-recovery", "otd-scale", "day-of-10000"}
    for name in shipped():
        for scenario in find(name):
            for policy in scenario.control.policies:
                choose(policy, scenario.control)


def test_a_scenario_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadScenario, match="one of day-of-10000, ds2-dhalion-flink"):
        find("ds2-dhalion")
    with pytest.raises(BadScenario, match="a TOML file that can be read"):
        find("nowhere/at-all.toml")


def test_a_day_has_its_peak_where_it_says() -> None:
    sine = 'kind = "sine", mean = 100, amplitude = 50, period_s = 80, peak_at_s = 30'
    scenario = small(**{'kind = "constant", rows_per_s = 2000': sine})
    profile = scenario.sources[0].profile
    assert isinstance(profile.shape, Sine)
    arrivals = Arrivals(profile, 80, np.random.default_rng(0))
    assert max(range(80), key=arrivals.rate) == 30
    assert arrivals.due(80) == pytest.approx(100 * 80, rel=0.01)


def test_the_scenario_in_the_guide_can_be_read() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    (scenario,) = read(guide.split("```toml\n")[1].split("```")[0], "guide")
    assert [choose(name, scenario.control) is not None for name in scenario.control.policies] == [True, True]

"""Small scenarios for tests."""

from collections.abc import Mapping
from typing import Any

from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Decision, Hold, Scale
from springtide.policies.past import Past
from springtide.simulator.scenario.read import read
from springtide.simulator.scenario.scenario import Scenario
from springtide.simulator.simulate import Run, simulate

SMALL = """
duration_s = 120
seed = 7

[flow]
overhead_s = 0.2

[[sources]]
name = "lines"
rate = { kind = "constant", rows_per_s = 2000 }

[[operators]]
name = "split"
from = ["lines"]
service_us = 100
selectivity = 2.5

[[operators]]
name = "count"
from = ["split"]
service_us = 50
keys = 100_000
key_bytes = 100

[cluster]
workers = 4
slots = 2
start_s = 5
warm_up_s = 2

[state]
slices = 64

[control]
policies = ["none"]
interval_s = 10
"""


def small(extra: str = "", **replaced: str) -> Scenario:
    """The small scenario with more tables, and with some of its text replaced."""
    text = SMALL
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (found,) = read(text + extra, "small")
    return found


class Plan:
    """Scales to a given number of workers at its n-th decision; a stand-in for a policy."""

    def __init__(self, steps: Mapping[int, int]) -> None:
        self.steps = steps

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        workers = self.steps.get(len(past))
        return Hold("not now") if workers is None else Scale(workers, "it is time")


def run(scenario: Scenario, steps: Mapping[int, int] | None = None) -> Run:
    return simulate(scenario, "planned", Plan(steps or {}))


def balanced(of: Run) -> bool:
    """Whether every row is accounted for, once."""
    totals = of.totals
    return (totals.lost, totals.doubled) == (0, 0) and totals.offered == totals.processed + totals.waiting


def details(of: Run, kind: str, name: str) -> list[Any]:
    return [event.details[name] for event in of.story.of(kind)]

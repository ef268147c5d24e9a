"""Runs a scenario under one policy."""

import gc
import math
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from springtide.policies.policy import Policy
from springtide.simulator.model.arrivals import Arrivals
from springtide.simulator.model.control_loop import Plant, Steering
from springtide.simulator.model.elastic import Elastic
from springtide.simulator.model.peer import Peer
from springtide.simulator.report.books import Books, Totals
from springtide.simulator.report.story import Story, Summary
from springtide.simulator.scenario.scenario import PIPELINE, Scenario

SAMPLES = 600
"""How often a run is looked at for its story, at most."""
EPOCHS_A_SAMPLE = 5
"""Fewer would show the beat of the epochs, and not what they come to."""

Progress = Callable[[float], None]
"""Told of simulated seconds that have passed."""


@dataclass(frozen=True)
class Run:
    """A run that is over."""

    scenario: Scenario
    policy: str
    story: Story
    totals: Totals
    epochs_s: tuple[float, ...]
    """How long each epoch took; none in a pipeline."""
    lag_rows: float
    """Rows that waited at the end of an epoch, on average."""

    @property
    def summary(self) -> Summary:
        return self.story.summary(self.totals)

    def to_json(self) -> str:
        return self.story.to_json(self.totals)


def simulate(scenario: Scenario, name: str, policy: Policy | None, progress: Progress | None = None) -> Run:
    """From the start to the end; without a policy nothing is decided. The same seed gives the same run."""
    env = simpy.Environment()
    rng = np.random.default_rng(scenario.seed)
    arrivals = {s.name: Arrivals(s.profile, scenario.duration_s, rng) for s in scenario.sources}
    backlogs = {s.name: s.backlog_s for s in scenario.sources if s.backlog_s is not None}
    books = Books(arrivals, scenario.operators, backlogs)
    story = Story(scenario.name, name)
    make = Peer if scenario.flow.kind == PIPELINE else Elastic
    plant: Plant = make(env, scenario, books, story, rng)
    if policy is not None:
        steering = Steering(env, plant, policy, story)
        env.process(steering.run(*scenario.control.times(name)))
    env.process(_tell(env, plant, story, _sampling_s(scenario), progress))
    # A little longer, so that the last sample is in it.
    with _no_collector():
        env.run(scenario.duration_s + 1e-6)
    return Run(scenario, name, story, books.totals(env.now), plant.epochs_s, plant.lag_rows)


def _sampling_s(scenario: Scenario) -> float:
    """Seconds from one sample to the next: whole epochs, if they keep to their trigger."""
    flow = scenario.flow
    beat_s = EPOCHS_A_SAMPLE * (flow.tick_s if flow.kind == PIPELINE else flow.trigger_s)
    every_s = math.ceil(scenario.duration_s / SAMPLES / beat_s) * beat_s
    return min(every_s, scenario.duration_s)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Snapshots of thousands of workers would make the garbage collector look at them all, and find nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _tell(
    env: simpy.Environment, plant: Plant, story: Story, every_s: float, progress: Progress | None
) -> Generator[simpy.Event, Any, None]:
    while True:
        cores = plant.cores
        yield env.timeout(every_s)
        story.samples.append(plant.sample())
        story.core_s += (cores + plant.cores) / 2 * every_s
        if progress is not None:
            progress(every_s)

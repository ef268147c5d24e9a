"""An app on Springtide, modelled: epochs, migrations at their boundaries, losses and recovery."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Decision, Rebalance, Scale
from springtide.simulator.model.epochs import Epochs
from springtide.simulator.model.healing import Healer
from springtide.simulator.model.modelled_snapshot import look
from springtide.simulator.model.moving import Mover
from springtide.simulator.model.placement import Placement
from springtide.simulator.model.window import Window
from springtide.simulator.report.books import Books
from springtide.simulator.report.story import RECOVERY, Sample, Story
from springtide.simulator.scenario.scenario import Outage, Scenario


class Elastic:
    """Runs in a SimPy environment."""

    def __init__(
        self, env: simpy.Environment, scenario: Scenario, books: Books, story: Story, rng: np.random.Generator
    ) -> None:
        self.env, self.scenario, self.books, self.story, self.rng = env, scenario, books, story, rng
        self.placement = Placement(scenario, rng)
        self.epochs = Epochs(scenario, books, self.placement, rng)
        self.mover = Mover(env, self.epochs, story)
        self.healer = Healer(env, self.mover, story)
        self._seen = Window(0.0)
        self._sampled = Window(0.0)
        self._epochs_s: list[float] = []
        self._lags: list[int] = []
        self._loss = env.event()
        self._lost_at: float | None = None
        self._went_back = False
        self._published_s = 0.0
        """When the newest published rows were taken."""
        self.pause_s = 0.0
        env.process(self._work())
        env.process(self._checkpoints())
        env.process(self._durable_checkpoints())
        env.process(self._outages())
        if scenario.failures.mean_h is not None:
            env.process(self._wear(scenario.failures.mean_h))

    @property
    def busy(self) -> str:
        """What is under way, in words; empty if nothing is."""
        return self.mover.change.what if self.mover.change else ""

    @property
    def workers(self) -> int:
        return len(self.mover.paid)

    @property
    def cores(self) -> int:
        return self.workers * self.scenario.cluster.slots

    def enact(self, decision: Decision) -> str:
        """Begin what was decided; the kind of step that it is."""
        if isinstance(decision, Scale):
            before = len(self.placement.ring.workers)
            self.mover.scale(decision.workers)
            return "up" if decision.workers > before else "down"
        assert isinstance(decision, Rebalance), "to hold is not enacted"
        self.mover.rebalance(decision.operator, decision.slices, decision.target)
        return "rebalance"

    @property
    def epochs_s(self) -> tuple[float, ...]:
        return tuple(self._epochs_s)

    @property
    def lag_rows(self) -> float:
        return sum(self._lags) / max(1, len(self._lags))

    @property
    def measured_s(self) -> float:
        return self.env.now - self._seen.began_s

    def observe(self) -> Snapshot:
        """The time since the last look."""
        window, self._seen = self._seen, Window(self.env.now)
        return look(self.env.now, window, self.epochs, self.lag_s, self.pause_s)

    @property
    def lag_s(self) -> float:
        return self.env.now - self._published_s

    def sample(self) -> Sample:
        window, self._sampled = self._sampled, Window(self.env.now)
        return window.sample(
            self.env.now,
            self.books.arrivals.values(),
            self.cores,
            lag_rows=self.books.lag_rows(self.env.now),
            lag_s=round(self.lag_s, 3),
            workers=self.workers,
        )

    def _work(self) -> Generator[simpy.Event, Any, None]:
        while True:
            self.mover.boundary()
            yield from self._pause()
            began_s = self.env.now
            epoch = self.epochs.plan(began_s)
            yield self.env.timeout(epoch.seconds) | self._loss
            if self.healer.lost:
                yield from self._recover()
                continue
            self.epochs.commit(epoch, (self._seen, self._sampled))
            self.books.hold_back(self.env.now)
            self._epochs_s.append(epoch.seconds)
            self._lags.append(self.books.lag_rows(self.env.now))
            self._published_s = began_s
            self._tell_recovery()
            rest_s = self.scenario.flow.trigger_s - (self.env.now - began_s)
            if rest_s > 0:
                yield self.env.timeout(rest_s) | self._loss
                if self.healer.lost:
                    yield from self._recover()

    def _pause(self) -> Generator[simpy.Event, Any, None]:
        """The whole app stands still if its strategy is to stop and restart."""
        pause_s = self.mover.paused_until_s - self.env.now
        if pause_s > 0:
            self.pause_s = max(self.pause_s, pause_s)
            yield self.env.timeout(pause_s)

    def _recover(self) -> Generator[simpy.Event, Any, None]:
        """The epoch in flight is given up; the next one runs under another plan."""
        yield self.env.timeout(self.scenario.failures.detect_s)
        self._loss = self.env.event()
        seconds, went_back = self.healer.heal()
        self._went_back = self._went_back or went_back
        if seconds > 0:
            yield self.env.timeout(seconds)

    def _tell_recovery(self) -> None:
        if self._lost_at is not None:
            seconds = round(self.env.now - self._lost_at, 3)
            what = "from the durable checkpoint" if self._went_back else "from replicas"
            self.story.tell(self.env.now, RECOVERY, what, seconds=seconds, went_back=int(self._went_back))
            self._lost_at, self._went_back = None, False

    def _noticed(self) -> None:
        if self._lost_at is None:
            self._lost_at = self.env.now
        if not self._loss.triggered:
            self._loss.succeed()

    def _checkpoints(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self.env.timeout(self.scenario.state.checkpoint_s)
            self.mover.checkpoint = {name: account.done for name, account in self.books.accounts.items()}

    def _durable_checkpoints(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self.env.timeout(self.scenario.state.durable_s)
            if not self.epochs.stalled and not self.epochs.released:
                self.healer.durable = self.books.copy()

    def _outages(self) -> Generator[simpy.Event, Any, None]:
        for outage in sorted(self.scenario.failures.outages, key=lambda one: one.at_s):
            yield self.env.timeout(max(0.0, outage.at_s - self.env.now))
            self._strike(outage)

    def _wear(self, mean_h: float) -> Generator[simpy.Event, Any, None]:
        """Workers are lost by chance, each as likely as the others."""
        while True:
            yield self.env.timeout(self.rng.exponential(mean_h * 3600 / max(1, self.workers)))
            self._strike(Outage(self.env.now))

    def _strike(self, outage: Outage) -> None:
        if len(self.healer.lost) < len(self.placement.ring.workers):
            self.healer.strike(outage, self.rng)
            self._noticed()

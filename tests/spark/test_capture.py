"""An epoch that is stopped between two operators goes on under another plan, from what was captured of it."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from springtide import sinks, sources
from springtide.blocks.manifest import States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.lifecycle import start_pool
from springtide.engine.ownership.held_state import SoleState
from springtide.engine.pool.embedded import EmbeddedPool
from springtide.metrics.report import EpochReport
from springtide.migration.phase import Point
from springtide.plan.plan import Plan, even_plan
from springtide.workloads.dataflow_app import build
from springtide.workloads.dataflow_oracle import expected, faults, keys_of, miscounted
from springtide.workloads.dataflows import STAR

pytestmark = pytest.mark.spark
EVENTS, AN_EPOCH = 120, 30


class Swapping(EmbeddedPool):
    """Stops in the midst of an epoch, after its first level, and goes on with other instances; stops after the last."""

    levels_seen: ClassVar[list[int]] = []
    boundaries_seen: ClassVar[list[int]] = []
    captured: ClassVar[list[States]] = []

    def due(self, here: Point) -> bool:
        if here is Point.EPOCHS:
            self.boundaries_seen.append(self.plan.version)
            return len(self.boundaries_seen) == 2 * EVENTS // AN_EPOCH  # Before and after each: after the last one.
        if here is not Point.OPERATORS or self.captured:
            return False
        self.levels_seen.append(self.plan.version)
        return len(self.levels_seen) == 5  # Three levels an epoch: the second one of the second epoch.

    def swap(self, keeping: StopState) -> Plan:
        self.captured.append(dict(keeping.captured))
        assert keeping.store() is not None
        before = self.plan
        self._plan = even_plan(
            tuple(before.operators),
            slices=before.slices,
            instances=3,
            worker=start_pool.EMBEDDED,
            version=before.version + 1,  # type: ignore[arg-type]
        )
        self.state = SoleState(self._plan)
        return self._plan


@pytest.mark.parametrize("durable_every", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_rest_of_the_epoch_runs_elsewhere_and_nothing_shows(
    run_app: Callable[..., list[EpochReport]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable_every: int
) -> None:
    monkeypatch.setattr(Swapping, "levels_seen", [])
    monkeypatch.setattr(Swapping, "boundaries_seen", [])
    monkeypatch.setattr(Swapping, "captured", [])
    monkeypatch.setattr(start_pool, "EmbeddedPool", Swapping)
    source = sources.generator(1000, keys=8, seed=3, limit=EVENTS, start_s=0.0, max_rows_per_epoch=AN_EPOCH)
    sink = sinks.memory()
    reports = run_app(build(STAR, source=source, sink=sink, service_s=0.0), instances=2, durable_every=durable_every)
    assert [sorted(captured) for captured in Swapping.captured] == [["in-1", "in-2"], []], "none has to follow"
    plans = [report.plan for report in reports]
    assert plans == [1, 2, 2, 2], "an epoch has the plan under which it ended"
    instances = {operator.step: len(operator.instances) for operator in reports[1].operators}
    assert instances == {"in-1": 2, "in-2": 2, "hub": 3, "out-1": 3, "out-2": 3}
    assert not any(report.retries or report.replayed for report in reports)
    keys = keys_of(source, EVENTS)
    oracle = expected(STAR, keys, keys.__getitem__)
    assert faults(sink.rows(), oracle) == (0, 0)
    assert miscounted(sink.rows(), oracle) == 0

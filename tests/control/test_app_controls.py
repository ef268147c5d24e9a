"""The controls of an app: one loop at a time, and none once the app has ended."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from springtide import App, agg, sinks, sources
from springtide.blocks.store import LocalStore
from springtide.control.adapt.settings import Adapt
from springtide.control.api.app_controls import RunningControls
from springtide.engine.lifecycle.running import Running
from springtide.engine.spark.capacity import UNKNOWN
from springtide.migration.errors import Refused

SELDOM = Adapt(interval_s=3600.0)


def loops() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "springtide-loop"]


@pytest.fixture
def controls(tmp_path: Path) -> Iterator[RunningControls]:
    app = App("clicks")
    app.source("rows", sources.generator(1)).key_by("key").aggregate("counts", n=agg.count()).sink("o", sinks.noop())
    pool = SimpleNamespace(cluster=SimpleNamespace(capacity=lambda: UNKNOWN))
    found = RunningControls(
        "clicks", cast(Running, SimpleNamespace(pool=pool, reports=[])), app.graph(), LocalStore(tmp_path)
    )
    yield found
    found.stop()


def test_requests_at_the_same_moment_leave_one_loop(controls: RunningControls) -> None:
    together = threading.Barrier(4)

    def adapt() -> None:
        together.wait(timeout=30)
        controls.start_adapting(SELDOM)

    with ThreadPoolExecutor(4) as threads:
        for asked in [threads.submit(adapt) for _ in range(4)]:
            asked.result(timeout=60)
    assert loops() == ["springtide-loop"]
    controls.rest()
    assert loops() == []


def test_a_request_in_flight_when_the_app_ends_leaves_no_loop_behind(controls: RunningControls) -> None:
    controls.start_adapting(SELDOM)
    controls.stop()
    with pytest.raises(Refused, match="'clicks' has ended"):
        controls.start_adapting(SELDOM)
    assert loops() == []


def test_there_is_nothing_to_stop_before_it_adapts(controls: RunningControls) -> None:
    with pytest.raises(Refused, match="nothing to stop"):
        controls.rest()
    controls.start_adapting(SELDOM)
    assert controls.rest()["policy"] == "ds2"
    assert loops() == []

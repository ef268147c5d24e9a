"""What `docs/extending.md` shows works, and a package outside can give it a name."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest
from extending_kit import install

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.ids import SliceId, WorkerId
from springtide.migration.step import Flip, Options, Supply
from springtide.migration.strategies import LIVE, check_live
from springtide.plan.moves import Move
from springtide.plugins import BrokenPlugin, Registry
from springtide.policies.decision import Hold, Scale
from springtide.policies.registry import POLICIES, policy
from springtide.testing import StepHarness


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of somebody else's, installed."""
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for registry in (POLICIES, LIVE):
        monkeypatch.delitem(vars(registry), "_others", raising=False)
    import theirs

    yield theirs
    del sys.modules["theirs"]
    for registry in (POLICIES, LIVE):
        vars(registry).pop("_others", None)


def test_a_sink_is_found_by_its_name_and_publishes_an_epoch_once(theirs: ModuleType, tmp_path: Path) -> None:
    sink = sinks.json_lines(str(tmp_path / "out"))
    assert isinstance(sink, theirs.JsonLines)
    sink.check(None)
    output = SimpleNamespace(epoch=3, table=lambda: pa.table({"n": [1, 2]}))
    for _ in range(2):
        sink.publish(output)
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ['{"n": 1}\n{"n": 2}\n']


def test_a_source_is_taken_as_any_other(theirs: ModuleType) -> None:
    app = App("ticks")
    ticks = app.source("ticks", sources.ticks(10))
    ticks.sink("out", sinks.noop())
    (found, _) = app.graph()
    assert isinstance(found.spec, theirs.Ticks)
    assert (found.spec.kind, found.spec.replayable, found.spec.admits) == ("ticks", True, False)


@pytest.mark.usefixtures("theirs")
def test_an_aggregate_runs_in_a_step() -> None:
    app = App("alarms", slices=8)
    rows = app.source("rows", sources.generator(1)).key_by("room")
    rows.aggregate("alarms", alarm=agg.any_true("smoke")).sink("out", sinks.memory())
    harness = StepHarness(app, "alarms", {"room": str, "smoke": bool})
    first = harness.epoch([{"room": "a", "smoke": None}, {"room": "b", "smoke": False}, {"room": "b", "smoke": True}])
    assert first == [{"room": "a", "alarm": False}, {"room": "b", "alarm": True}]
    assert harness.epoch([{"room": "b", "smoke": False}]) == [{"room": "b", "alarm": True}]


@pytest.mark.usefixtures("theirs")
def test_a_policy_is_found_by_its_name_and_takes_options() -> None:
    decide = policy("rows_each", rows_per_s=100)
    snapshot = SimpleNamespace(arriving=250.0, workers=(1, 2))
    decision = decide(snapshot, ())  # type: ignore[arg-type]
    assert decision == Scale(3, "250 rows/s come, and a worker is for 100")
    assert isinstance(policy("rows_each")(snapshot, ()), Scale)  # type: ignore[arg-type]
    assert isinstance(policy("rows_each", rows_per_s=125)(snapshot, ()), Hold)  # type: ignore[arg-type]
    App("an-app").adapt(1, 4, "rows_each")


@pytest.mark.usefixtures("theirs")
def test_a_strategy_is_found_by_its_name() -> None:
    check_live("one_by_one", Options())
    moves = [Move("count", SliceId(n), WorkerId("a"), WorkerId("b")) for n in range(2)]
    steps = LIVE["one_by_one"].steps(moves, Options())
    assert [type(step) for step in steps] == [Supply, Flip, Supply, Flip]


@pytest.mark.usefixtures("theirs")
def test_our_own_names_cannot_be_taken() -> None:
    assert isinstance(sinks.memory(), sinks.Memory)
    registry = Registry("springtide.sinks", {"memory": sinks.memory})
    assert registry["memory"] is sinks.memory
    assert sorted(registry) == ["broken", "json_lines", "memory"]


@pytest.mark.usefixtures("theirs")
def test_what_cannot_be_imported_is_named_with_its_package() -> None:
    with pytest.raises(BrokenPlugin, match=r"'broken' of the group 'springtide.sinks' .* 'theirs:Missing'"):
        sinks.broken()
    with pytest.raises(AttributeError, match="no attribute 'nowhere', and no package offers one"):
        sinks.nowhere()


def test_an_object_that_publishes_is_a_sink_as_it_is() -> None:
    seen: list[int] = []
    app = App("plain")
    app.source("rows", sources.generator(1)).sink("out", SimpleNamespace(publish=lambda o: seen.append(o.epoch)))
    *_, sink = app.graph()
    sink.spec.check(None)
    sink.spec.publish(SimpleNamespace(epoch=7))
    assert (seen, sink.spec.place, sink.spec.columns) == ([7], None, ())
    with pytest.raises(BadGraph, match=r"a sink from springtide\.sinks"):
        app.source("more", sources.generator(1)).sink("other", object())  # type: ignore[arg-type]

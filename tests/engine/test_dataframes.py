"""Which rows an epoch keeps, and when it reads them anew."""

from types import SimpleNamespace
from typing import Any, cast

from springtide import App, agg, sinks, sources
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.ids import Epoch
from springtide.plan.shedding import NOTHING


class Frame:
    """Notes whether it is kept."""

    def __init__(self) -> None:
        self.sparkSession = None
        self.history: list[str] = []

    def persist(self) -> "Frame":
        self.history.append("kept")
        return self

    def unpersist(self) -> "Frame":
        self.history.append("dropped")
        return self


def frames(batch: Frame, *names: str) -> EpochDataFrames:
    """The frames of an epoch with these sources, each of which feeds a step."""
    app = App("app")
    for name in names:
        rows = app.source(name, sources.generator(1))
        rows.key_by("key").aggregate(f"count_{name}", n=agg.count()).sink(f"out_{name}", sinks.noop())
    bound = SimpleNamespace(graph=app.graph())
    inputs = SimpleNamespace(several=len(names) > 1, sheds=False, split=lambda frame: dict.fromkeys(names, frame))
    return EpochDataFrames(cast(Any, bound), cast(Any, inputs), cast(Any, batch), cast(Any, None), Epoch(0), NOTHING)


def test_rows_of_several_sources_are_kept_until_the_epoch_ends() -> None:
    batch = Frame()
    with frames(batch, "left", "right"):
        assert batch.history == ["kept"]
    assert batch.history == ["kept", "dropped"]


def test_an_epoch_that_is_run_anew_reads_its_rows_anew() -> None:
    """A job that failed may have kept rows that no task has told of."""
    batch = Frame()
    with frames(batch, "left", "right") as epoch:
        epoch.restart()
        assert batch.history == ["kept", "dropped", "kept"]
    assert batch.history[-1] == "dropped"


def test_rows_of_one_source_are_not_kept() -> None:
    batch = Frame()
    with frames(batch, "rows") as epoch:
        epoch.restart()
    assert batch.history == []

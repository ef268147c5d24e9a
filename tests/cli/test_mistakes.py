"""What people get wrong: each mistake ends in one message and an exit code, and nothing that was there is lost."""

import contextlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from app_process import published
from typer.testing import CliRunner, Result

from springtide import sources
from springtide.cli.main import cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

APP = """
from springtide import App, agg, sinks, sources

def build(step="counts", key="key", source=None, sink=None, change=lambda rows: rows, **results):
    app = App("tide")
    rows = app.source("rows", source or sources.generator(100, keys=7, limit=1000, start_s=0.0, max_rows_per_epoch=100))
    counted = change(rows).key_by(key).aggregate(step, **(results or dict(n=agg.count(), most=agg.max("value"))))
    counted.sink("out", sink or sinks.parquet("out"))
    return app

"""
GOOD = "app = build()"
RUN = "run app.py --until available"
MISTAKES = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())["mistake"]
FRAMES = "failed while it was loaded"
"""A person's own traceback is what they need to see."""


@pytest.fixture(scope="module")
def tide(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A directory with an app that has had one epoch; after all mistakes it goes on, and has lost nothing."""
    with contextlib.chdir(tmp_path_factory.mktemp("mistakes")):
        Path("app.py").write_text(APP + GOOD)
        first = springtide("run app.py --until epochs=1")
        assert first.exit_code == 0, first.output
        yield
        Path("app.py").write_text(APP + GOOD)
        last = springtide(RUN)
        assert last.exit_code == 0, last.output
        assert published(Path("out")) == counted_one_by_one()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["name"])
def test_a_mistake(tide: None, mistake: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("app.py").write_text(APP + mistake.get("app", GOOD))
    for name, value in mistake.get("environment", {}).items():
        monkeypatch.setenv(name, value)
    done = springtide(mistake.get("command", RUN))
    said = re.sub(r"[│╭╰╮╯─]", " ", done.output)
    assert done.exit_code == mistake["code"], said
    in_one_line = re.sub(r"\s+", " ", said)
    assert re.search(mistake["says"], said) or re.search(mistake["says"], in_one_line), said
    assert "Traceback" not in said or FRAMES in said
    assert "Py4J" not in said
    assert "a fault in Springtide" not in said
    assert not Path(".springtide/tide/control.json").exists()
    assert not Path(".springtide/tide/presence.json").exists()


def test_there_are_thirty_and_each_has_a_name_of_its_own() -> None:
    assert len({mistake["name"] for mistake in MISTAKES}) == len(MISTAKES) >= 30


def springtide(command: str) -> Result:
    return CliRunner().invoke(cli, shlex.split(command))


def counted_one_by_one() -> dict[int, int]:
    """The same rows, without epochs, slices or Spark."""
    spec = sources.generator(100, keys=7, limit=1000, start_s=0.0, max_rows_per_epoch=100).spec
    keys = spec.rows(0, 1000, 0.0).column("key").to_pylist()
    return {key: keys.count(key) for key in set(keys)}

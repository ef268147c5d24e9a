"""`springtide run` and `springtide status`, as a person uses them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = """
from beside import shout
from springtide import App, agg, sinks, sources

def louder(table):
    return table.select(["text"]).set_column(0, "word", shout(table["text"]))

app = App("shouting")
text = sources.generator(1000, words_per_row=1, keys=5, limit=400, start_s=0.0, max_rows_per_epoch=100)
lines = app.source("lines", text)
words = lines.map_batches("louder", louder, {"word": str})
words.key_by("word").aggregate("count", n=agg.count()).sink("out", sinks.parquet("out"))
"""
BESIDE = """
import pyarrow.compute as pc

def shout(column):
    return pc.utf8_upper(column)
"""
BROKEN = """
from springtide import App, agg, sinks, sources

def explode(table):
    raise LookupError("no such tide")

app = App("broken")
rows = app.source("rows", sources.generator(1000, limit=10, start_s=0.0)).map_batches("boom", explode, {"key": int})
rows.key_by("key").aggregate("count", n=agg.count()).sink("out", sinks.noop())
"""


def springtide(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from springtide.cli.entry import main; main()", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_an_app_runs_stops_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "app.py").write_text(APP)
    (tmp_path / "jobs" / "beside.py").write_text(BESIDE)
    first = springtide(tmp_path, "run", "jobs/app.py", "--until", "epochs=2", "--instances", "3")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "done after 2 epochs and 200 rows; the checkpoint is .springtide/shouting" in first.stdout
    second = springtide(tmp_path, "run", "jobs/app.py", "--until", "available", "--quiet")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    shown = springtide(tmp_path, "status", "shouting", "--json")
    reports = [json.loads(line) for line in shown.stdout.splitlines()]
    # An epoch whose commit Spark had not logged before the first run ended is published again by the second.
    assert [(r["epoch"], r["rows_in"]) for r in reports if not r["replayed"]] == [(e, 100) for e in range(4)]
    assert (tmp_path / "out" / "epoch=3").is_dir()


@pytest.mark.slow
def test_a_failing_step_is_named_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    failed = springtide(tmp_path, "run", "broken.py", "--until", "available")
    assert failed.returncode == 1
    assert "step 'boom' failed while calling its function: LookupError: no such tide" in failed.stderr
    assert "Traceback" not in failed.stderr

"""The demo, as a person runs it, and the parts of it that must tell the truth."""

import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from springtide import sources
from springtide.cli.verbs.demo import batch_count, compare

COMMAND = [sys.executable, "-c", "from springtide.cli.entry import main; main()"]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_demo_ends_by_itself_and_proves_its_count(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [*COMMAND, "demo", "--embedded", "--rows", "2000"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Equal:" in done.stdout
    assert "16,000 words in all" in done.stdout
    assert "epoch 0  rows" in done.stdout, "not a terminal: one line an epoch"
    assert done.stderr == "", "nothing of Spark's start-up reaches the terminal"
    assert [p.name for p in tmp_path.iterdir()] == ["scratch"], "nothing is left in the working directory"
    assert not list(scratch.glob("springtide-*")), "the temporary checkpoint is removed"


def test_the_batch_count_does_not_depend_on_how_it_is_cut() -> None:
    spec = sources.generator(100, limit=500, words_per_row=4, keys=50, skew=1.1).spec
    whole = batch_count(spec, 500)
    assert whole == batch_count(spec, 500, at_once=7)
    assert whole.total() == 2000


def test_different_counts_are_shown() -> None:
    out = io.StringIO()
    terminal = Console(file=out, width=100)
    streamed = {"ebb": 2, "flow": 3, "wave": 1}
    assert not compare(terminal, streamed, Counter({"ebb": 2, "flow": 4, "tide": 1}))
    assert "Different: 3 of 3 words" in out.getvalue()
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["flow", "3", "4"] in lines
    assert ["tide", "-", "1"] in lines
    assert ["wave", "1", "-"] in lines


def test_equal_counts_are_said_to_be_equal() -> None:
    out = io.StringIO()
    assert compare(Console(file=out, width=200), {"ebb": 2}, Counter({"ebb": 2}))
    assert "Equal: all 1 words have the same count" in out.getvalue()

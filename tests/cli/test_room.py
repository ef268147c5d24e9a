"""More workers than this machine carries are refused before anything starts."""

import subprocess
import sys
from pathlib import Path

import pytest

APP = """
from springtide import App, agg, sinks, sources

app = App("small")
rows = app.source("rows", sources.generator(1000, limit=10, start_s=0.0))
rows.key_by("key").aggregate("count", n=agg.count()).sink("out", sinks.noop())
"""


@pytest.mark.parametrize("much", [("--workers", "9999"), ("--workers", "1", "--adapt", "ds2", "--maximum", "9999")])
def test_run_says_how_many_there_is_room_for(tmp_path: Path, much: tuple[str, ...]) -> None:
    (tmp_path / "app.py").write_text(APP)
    command = [sys.executable, "-c", "from springtide.cli.entry import main; main()", "run", "app.py", *much]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert said.startswith("9999 workers asked for; this machine (")
    assert "--force" in said
    assert not (tmp_path / ".springtide").exists(), "nothing was written"

"""A checkpoint is for its owner alone, also on a session that the user brought."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from springtide import App, sinks, sources

pytestmark = pytest.mark.spark


def test_a_checkpoint_is_for_its_owner_alone_unless_it_was_there(
    run_app: Callable[..., object], tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        for name in ("new", "there"):
            app = App("closed")
            rows = app.source("rows", sources.generator(10, limit=10, start_s=1_700_000_000.0))
            rows.sink("out", sinks.parquet(str(tmp_path / f"{name}-out")))
            run_app(app, checkpoint=str(tmp_path / name))
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "there", "new-out")}
    assert modes == {"new": 0o700, "there": 0o755, "new-out": 0o755}, "what a sink writes is for others to read"

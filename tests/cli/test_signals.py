"""A signal at any moment, and Spark that dies: one message, a shell's exit code, and nothing lost at the next start."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from app_process import APP, SPRINGTIDE, AppProcess, published
from waiting import wait_until

from springtide import sources

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 12_000
RATE = 2_000
STARTING, EPOCH = "", r"^epoch 1 "
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
NOISE = re.compile(r"Traceback|Py4J|py4j|^\s+at [\w.$/]+\(|Exception in thread", re.MULTILINE)


@pytest.fixture
def tide(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP.format(rate=RATE, limit=ROWS))
    return tmp_path


def slow(*case: object) -> object:
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("moment", "number", "group", "code", "says"),
    [
        ("import", INT, True, 130, "interrupted"),
        slow("Spark", INT, True, 130, "interrupted while the app was starting; nothing was lost"),
        slow("Spark", TERM, True, 143, "ended by SIGTERM while the app was starting"),
        slow("Spark", HUP, False, 129, "ended by SIGHUP while the app was starting"),
        slow("epoch", INT, True, 0, "stopped after"),
        slow("epoch", TERM, False, 0, "stopped after"),
        # Whoever is quicker: the epoch in flight, or Spark, which gets the signal as well.
        ("epoch", TERM, True, (0, 143), "stopped after|SIGTERM went to the whole process group and ended Spark"),
    ],
)
def test_a_signal(tide: Path, moment: str, number: signal.Signals, group: bool, code: object, says: str) -> None:
    with AppProcess(tide) as app:
        if moment == "import":
            maps = Path(f"/proc/{app.process.pid}/maps")
            wait_until("a large import", lambda: "numpy" in maps.read_text(), 60.0)
        elif moment == "Spark":
            _wait_for_jvm(app)
        elif moment == "epoch":
            app.until(EPOCH)
        app.send(number, group=group)
        assert app.ended() in (code if isinstance(code, tuple) else (code,)), app.said
        assert re.search(says, app.said), app.said
        assert not NOISE.search(app.said), app.said
    if moment != "import":
        _goes_on_and_is_exact(tide)


@pytest.mark.parametrize("workers", [(), pytest.param(("--workers", "2"), marks=pytest.mark.slow)], ids=["one", "two"])
def test_spark_dies(tide: Path, workers: tuple[str, ...]) -> None:
    with AppProcess(tide, *workers) as app:
        app.until(EPOCH)
        os.kill(app.jvm(), signal.SIGKILL)
        assert app.ended() == 1, app.said
        assert "Spark's JVM has ended by signal 9 (SIGKILL) while the app ran. What was committed is safe" in app.said
        assert not NOISE.search(app.said), app.said
    _goes_on_and_is_exact(tide)


@pytest.mark.slow
@pytest.mark.parametrize("number", [INT, TERM])
def test_a_second_signal_while_it_stops(tide: Path, number: signal.Signals) -> None:
    (tide / "app.py").write_text(APP.format(rate=RATE, limit=ROWS) + SLOW_SINK)
    with AppProcess(tide) as app:
        wait_until("the sink to publish", (tide / "publishing").exists, 120.0, lambda: app.said)
        app.send(number, group=False)
        app.until("finishing the epoch in flight")
        while app.process.poll() is None:  # The second counts when it comes a second after the first.
            app.send(number, group=False)
            _pause(app)
        assert app.ended() == 128 + number, app.said
        assert "at once: the epoch in flight is run again at the next start" in app.said
        assert not NOISE.search(app.said), app.said
    (tide / "app.py").write_text(APP.format(rate=RATE, limit=ROWS))
    _goes_on_and_is_exact(tide)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "group", "codes"), [(INT, True, {0}), (TERM, False, {0}), (TERM, True, {0, 143})])
def test_a_signal_while_it_migrates(tide: Path, number: signal.Signals, group: bool, codes: set[int]) -> None:
    with AppProcess(tide, "--workers", "2") as app:
        app.until(EPOCH)
        asked = subprocess.run(
            [*SPRINGTIDE, "scale", "tide", "--workers", "3", "--no-wait"],
            cwd=tide,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert asked.returncode == 0, asked.stderr
        app.send(number, group=group)
        assert app.ended() in codes, app.said
        assert not NOISE.search(app.said), app.said
    _goes_on_and_is_exact(tide)


SLOW_SINK = """
import pathlib
import time

def publish(rows, epoch):
    if epoch > 1:
        pathlib.Path("publishing").touch()
        time.sleep(600)  # The fault itself, not a wait.

rows.sink("slow", sinks.foreach_epoch(publish))
"""


def _pause(app: AppProcess) -> None:
    with suppress(subprocess.TimeoutExpired):
        app.process.wait(0.3)


def _wait_for_jvm(app: AppProcess) -> None:
    def jvm() -> int | None:
        try:
            return app.jvm()
        except (StopIteration, OSError):
            return None

    wait_until("Spark's JVM", jvm, 60.0, lambda: app.said)


def _goes_on_and_is_exact(tide: Path) -> None:
    with AppProcess(tide, "--until", "available") as app:
        assert app.ended() == 0, app.said
    found = published(tide / "out")
    spec = sources.generator(RATE, keys=50, limit=ROWS, max_rows_per_epoch=2000, start_s=0.0).spec
    rows = sum(found.values())
    keys = spec.rows(0, rows, 0.0).column("key").to_pylist()
    assert found == {key: keys.count(key) for key in set(keys)}

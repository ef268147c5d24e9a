"""Two drivers and one Parquet dataset: paused, continued and killed at any step, in any order."""

import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parquet_kit import Output, seen, whole

from springtide import faults, sinks
from springtide.blocks.errors import TakenOver
from springtide.connectors.parquet.directory import Directory

ORACLE = whole("abcd", "efgh", "ij")
LATE = (Output(0, ["ab", "cd"]), Output(1, ["e", "f", "gh"]))
RIGHTFUL = tuple(Output(epoch, parts, 2) for epoch, parts in enumerate((["abcd"], ["efg", "h"], ["i", "j"])))
"""The same rows in other parts, and an epoch more."""
WAIT_S = 20.0


class Killed(BaseException):
    """As if the process had been killed there."""


class Driver:
    """Publishes epochs in a thread of its own that stops at every step until it is told to go on."""

    def __init__(self, dataset: Path, epochs: Iterable[Output]) -> None:
        self._sink, self._epochs = sinks.parquet(str(dataset)), tuple(epochs)
        self._turn = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._killed = False
        self.ended: str | None = None
        self.name = f"generation {self._epochs[0].generation}"
        threading.Thread(target=self._drive, name=self.name, daemon=True).start()
        assert self._stopped.acquire(timeout=WAIT_S)

    def go_on(self, *, killed: bool = False) -> None:
        """Take one step; returns at the next, or when it has ended."""
        self._killed = killed
        self._turn.release()
        assert self._stopped.acquire(timeout=WAIT_S)

    def step(self) -> None:
        self._stopped.release()
        assert self._turn.acquire(timeout=WAIT_S)
        if self._killed:
            raise Killed

    def _drive(self) -> None:
        try:
            for output in self._epochs:
                self.step()
                self._sink.publish(output)
            self.ended = "done"
        except (Killed, TakenOver) as error:
            self.ended = type(error).__name__
        except Exception as error:
            self.ended = repr(error)
        self._stopped.release()


@pytest.fixture
def stepwise(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Iterable[Output]], Driver]:
    """Drivers that stop at failpoints, which are all the places where others could see a difference."""
    drivers: dict[str, Driver] = {}

    def start(dataset: Path, epochs: Iterable[Output]) -> Driver:
        driver = Driver(dataset, epochs)
        drivers[driver.name] = driver
        return driver

    def fire(point: str, epoch: int) -> None:
        if (driver := drivers.get(threading.current_thread().name)) is not None:
            driver.step()

    monkeypatch.setattr(faults, "fire", fire)
    return start


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(st.sampled_from(["late", "late", "rightful", "kill"]), max_size=24), late_first=st.booleans())
def test_every_look_sees_whole_epochs_and_the_rightful_driver_gets_through(
    tmp_path_factory: pytest.TempPathFactory,
    stepwise: Callable[[Path, Iterable[Output]], Driver],
    turns: list[str],
    late_first: bool,
) -> None:
    out = tmp_path_factory.mktemp("drivers") / "out"
    late, rightful = stepwise(out, LATE), stepwise(out, RIGHTFUL)

    def look() -> None:
        assert all(rows == ORACLE[epoch] for epoch, rows in seen(out).items())

    rest = [late, rightful] if late_first else [rightful, late]
    for turn in turns:
        driver = rightful if turn == "rightful" else late
        if driver.ended is None:
            driver.go_on(killed=turn == "kill")
        look()
    for driver in rest:
        while driver.ended is None:
            driver.go_on()
            look()
    assert rightful.ended == "done"
    assert late.ended in ("done", "Killed", "TakenOver")
    assert seen(out) == ORACLE
    assert not list(Directory.at(str(out), None).stage.iterdir())


def test_a_stage_that_is_half_removed_cannot_become_an_epoch(
    tmp_path: Path, stepwise: Callable[[Path, Iterable[Output]], Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late driver has all its parts, and goes on while its successor removes them, one by one."""
    late = stepwise(tmp_path / "out", LATE)
    for _ in range(3):  # Its start and two parts; it is about to rename.
        late.go_on()
    real = shutil.rmtree

    def remove(path: Path, **options: bool) -> None:
        if part := next(Path(path).rglob("*.parquet"), None):
            part.unlink()
            late.go_on()
        real(path, **options)

    monkeypatch.setattr(shutil, "rmtree", remove)
    sinks.parquet(str(tmp_path / "out")).publish(RIGHTFUL[2])
    assert late.ended == "TakenOver"
    assert seen(tmp_path / "out") == {2: ORACLE[2]}

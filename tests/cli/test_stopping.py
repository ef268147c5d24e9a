"""Ctrl-C ends an app after the epoch in flight."""

import os
import signal
from collections.abc import Callable
from itertools import count

import pytest

from springtide.cli.shared import signals
from springtide.cli.shared.signals import SIGNALS, EndedBySignal
from springtide.cli.shared.stopping import wait_or_stop
from springtide.engine.spark.session import SparkDied


class FakeApp:
    """An app whose every look does something, and that ends when it is told to."""

    def __init__(self, *looks: Callable[[], None]) -> None:
        self.looks = list(looks)
        self.stopped = False

    def wait(self, timeout_s: float) -> list[str]:
        if not self.looks:
            return ["ended"]
        self.looks.pop(0)()
        raise TimeoutError(f"the app still runs after {timeout_s} s")

    def stop(self) -> list[str]:
        self.stopped = True
        return ["stopped"]


def interrupt(number: signal.Signals = signal.SIGINT) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def nothing() -> None:
    """An uneventful look."""


def test_an_app_that_ends_by_itself() -> None:
    app, told = FakeApp(nothing, nothing), []
    assert wait_or_stop(app, lambda: told.append(1)) == (["ended"], False)  # type: ignore[arg-type]
    assert not told


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_it_in_good_order(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    app, told = FakeApp(nothing, interrupt(number), nothing), []
    assert wait_or_stop(app, lambda: told.append(1)) == (["stopped"], True)  # type: ignore[arg-type]
    assert app.stopped
    assert told == [1]
    assert signal.getsignal(number) is before


def test_a_second_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(number: int, line: str) -> None:
        raise SystemExit(f"{number}: {line}")

    monkeypatch.setattr(signals, "end_now", end)
    app = FakeApp(interrupt())
    app.stop = interrupt()  # type: ignore[method-assign, assignment]
    with pytest.raises(SystemExit, match="2: interrupted at once: the epoch in flight is run again"):
        wait_or_stop(app, nothing, count(step=2.0).__next__)  # type: ignore[arg-type]


def test_spark_that_a_signal_to_the_group_has_ended_is_no_failure_of_its_own() -> None:
    def dead() -> list[str]:
        raise SparkDied(-signal.SIGTERM)

    app = FakeApp(interrupt(signal.SIGTERM))
    app.stop = dead  # type: ignore[method-assign]
    with pytest.raises(EndedBySignal, match="SIGTERM went to the whole process group") as ended:
        wait_or_stop(app, nothing)  # type: ignore[arg-type]
    assert ended.value.exit_code == 143


def test_spark_that_dies_by_itself_is() -> None:
    def dead() -> None:
        raise SparkDied(-signal.SIGKILL)

    with pytest.raises(SparkDied, match=r"signal 9 \(SIGKILL\)"):
        wait_or_stop(FakeApp(dead), nothing)  # type: ignore[arg-type]


def test_a_signal_that_comes_twice_at_once_is_one() -> None:
    def twice() -> None:
        interrupt()()
        interrupt()()

    app = FakeApp(twice)
    assert wait_or_stop(app, nothing, lambda: 5.0) == (["stopped"], True)  # type: ignore[arg-type]


def test_a_time_out_of_the_app_itself_is_its_failure() -> None:
    def fail() -> None:
        raise TimeoutError(110, "the store is away")

    with pytest.raises(TimeoutError, match="the store is away"):
        wait_or_stop(FakeApp(fail), nothing)  # type: ignore[arg-type]

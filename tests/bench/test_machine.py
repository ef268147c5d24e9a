"""How fast the machine itself is."""

import pytest

from springtide.bench.harness.machine_speed import MachineWatch, Speed, usual_speed, worst_speed


def speeds(*per_s: float) -> list[Speed]:
    return [Speed(float(at), speed, 0.0) for at, speed in enumerate(per_s)]


def test_the_usual_speed_is_the_median_of_a_span() -> None:
    found = speeds(9, 9, 100, 110, 5, 200)
    assert usual_speed(found, 2, 4) == 100
    assert usual_speed(found, 50, 60) is None


def test_the_worst_are_ten_seconds_and_not_one() -> None:
    assert worst_speed(speeds(*[100] * 20, *[50] * 10, *[100] * 30)) == pytest.approx(0.5)
    assert worst_speed(speeds(*[100] * 20, 50, *[100] * 20)) == pytest.approx(0.95)
    assert worst_speed(speeds(100, 50)) is None


def test_a_watch_sees_the_machine() -> None:
    with MachineWatch(every_s=0.01) as watch:
        assert watch.looked.wait(30)
    assert watch.speeds[0].work_per_s > 1
    assert 0 <= watch.speeds[0].stolen <= 1

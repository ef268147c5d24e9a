"""What the figures of a soak are made of."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from springtide.bench.experiments.soak.bench import WARM, Soaked, findings
from springtide.bench.experiments.soak.vitals import Vitals, count_files, per_hour

SECONDS = 1000.0


def vitals(mb_per_hour: float = 0.0) -> tuple[Vitals, ...]:
    """A sample every ten seconds; the warm-up takes much, and is not measured."""
    found = []
    for number in range(100):
        at_s = 10.0 * number
        warming = 500.0 * min(1.0, at_s / (SECONDS * WARM))
        found.append(Vitals(at_s, 100.0 + warming + mb_per_hour * at_s / 3600, 80.0, 300, 90, 1000 + number % 7))
    return tuple(found)


def soaked(mb_per_hour: float = 0.0, last_s: float = 1.0) -> Soaked:
    epochs = [(float(n), 9.0 if n < SECONDS * WARM else 1.0 if n < 700 else last_s) for n in range(1000)]
    return Soaked(SECONDS, vitals(mb_per_hour), tuple(epochs))


def test_what_is_flat_after_the_warm_up_is_flat() -> None:
    slopes = soaked().slopes()
    assert slopes["driver_mb_per_hour"] == pytest.approx(0.0)
    assert (slopes["descriptors_per_hour"], slopes["threads_per_hour"]) == (0.0, 0.0)
    assert abs(slopes["files_per_hour"]) < 20, "files that come and go are no growth"


def test_a_leak_shows_and_a_sample_that_stands_out_does_not_hide_it() -> None:
    leaking = list(vitals(mb_per_hour=36.0))
    leaking[50] = replace(leaking[50], python_mb=9_000.0)
    assert per_hour(leaking, lambda v: v.python_mb, SECONDS * WARM) == pytest.approx(36.0, abs=0.5)
    assert per_hour(leaking[:1], lambda v: v.python_mb, 0.0) == 0.0


def test_epochs_that_get_slower_show() -> None:
    assert soaked().last_over_first() == 1.0
    assert soaked(last_s=1.3).last_over_first() == pytest.approx(1.3)


def test_the_figures_are_ours_and_the_peers_stand_beside_them(tmp_path: Path) -> None:
    found = findings({"springtide": soaked(), "spark": soaked(72.0)}, 20.0)
    assert found.figures["spark_driver_mb_per_hour"] == pytest.approx(72.0, rel=0.05)
    named = ("driver_mb_per_hour", "descriptors_per_hour", "threads_per_hour", "files_per_hour")
    assert {*named, "epoch_p50_last_over_first"} <= found.figures.keys()
    found.publish(tmp_path, as_json=True, console=Console(quiet=True))
    assert (tmp_path / "bench-soak.png").exists()


def test_files_are_counted_all_the_way_down(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("1", "a/2", "a/b/3"):
        (tmp_path / name).touch()
    assert count_files(tmp_path) == 3
    assert count_files(tmp_path / "gone") == 0

"""The experiment on the controller's cycle: its situations are what they say, and others can measure beside it."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from springtide.bench.experiments.qod.bench import Beside, QodBench, cycle, records


def test_every_size_has_its_figure_and_others_can_add_theirs(tmp_path: Path) -> None:
    other = Beside({"rate_error_mean": 0.004, "rate_error_p90": 0.02}, [["rate error", "0.4 %"]])
    findings = QodBench(tasks=(8, 16), machines=(2, 3), rounds=3, beside=(lambda: other,)).run()
    assert {f"cycle_ms_{tasks}_tasks_{machines}_machines" for tasks in (8, 16) for machines in (2, 3)} < set(
        findings.figures
    )
    assert findings.figures["cycle_ms"] == max(
        findings.figures[f"cycle_ms_16_tasks_{machines}_machines"] for machines in (2, 3)
    )
    assert findings.figures["cycle_cpu_ms"] > 0
    assert findings.figures["rate_error_mean"] == 0.004
    assert len(findings.rows) == 2 * 2 + 1 + 1
    findings.publish(tmp_path, as_json=False, console=Console(file=StringIO(), width=80))
    assert (tmp_path / "bench-qod.png").stat().st_size > 5_000


@pytest.mark.parametrize(("room", "sheds", "below"), [(1.5, False, False), (0.7, True, False), (0.4, True, True)])
def test_the_situations_are_calm_overloaded_and_too_small(room: float, sheds: bool, below: bool) -> None:
    given = records(400, 2, room, seed=7)
    graph, decision = cycle(given)
    again, same = cycle(given, graph)
    assert (again is graph, same.accuracy) == (True, decision.accuracy)
    assert len(decision.task_accuracy) == 400
    assert bool(decision.shed) == sheds
    assert bool(decision.below_minimum) == below


def test_records_are_the_same_for_the_same_seed() -> None:
    assert records(40, 2, 0.7, seed=3) == records(40, 2, 0.7, seed=3) != records(40, 2, 0.7, seed=4)

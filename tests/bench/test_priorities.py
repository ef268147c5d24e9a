"""What the figures of two scenarios are made of."""

from pathlib import Path

import pytest
from rich.console import Console

from springtide.bench.experiments.priorities.bench import (
    CYCLE_S,
    EQUAL,
    RANKED,
    _findings,
    below_minimum,
    cycles,
    inversions,
    moves,
)
from springtide.bench.experiments.priorities.scenarios import Played, Seen
from springtide.metrics.report import EpochReport, Phases, QueryReport

BEGAN = 1000.0


def report(cycle: int, *queries: QueryReport) -> EpochReport:
    at = BEGAN + cycle * CYCLE_S + 1
    return EpochReport("taxi", cycle, at, 1, False, 0, 0, 0, 2.0, 0, Phases(compute_s=1.0), queries=queries)


def query(name: str, processed: int, priority: int, minimum: float) -> QueryReport:
    return QueryReport(name, 100, processed, 100 - processed, 0, processed / 100, priority, minimum)


def played(*shares: tuple[int, int], moved: bool = False) -> Played:
    """Cycles in which `zones`, of priority 3, and `speeds`, of 2, got these shares."""
    reports = [report(n, query("zones", a, 3, 0.6), query("speeds", b, 2, 0.4)) for n, (a, b) in enumerate(shares)]
    owners = [(BEGAN - 1, {"zones-of": ("0",), "speeds-of": ("0",)})]
    if moved:
        owners.append((BEGAN + 1.5 * CYCLE_S, {"zones-of": ("0",), "speeds-of": ("1",)}))
    return Played(RANKED, BEGAN, (Seen("taxi", (report(-1), *reports), (), tuple(owners)),))


def test_a_query_below_its_minimum_is_counted_once_a_cycle() -> None:
    found = cycles(played((100, 100), (59, 40), (60, 39)))
    assert [(c.number, c.query) for c in below_minimum(found)] == [(1, "zones"), (2, "speeds")]


def test_a_cycle_that_the_end_cuts_short_does_not_count() -> None:
    """It has the rows of one epoch or two, and which of them are kept is by chance."""
    last = int(RANKED.seconds // CYCLE_S)
    found = cycles(played(*[(100, 100)] * last, (59, 39)))
    assert max(cycle.number for cycle in found) == last - 1
    assert not below_minimum(found)


def test_an_inversion_is_a_low_query_with_something_to_give_beside_a_high_one_that_sheds() -> None:
    found = cycles(played((70, 100), (100, 70), (70, 70), (60, 42)))
    assert [(high.number, high.query, low.query) for high, low in inversions(found)] == [(0, "zones", "speeds")]


def test_queries_on_different_workers_do_not_give_way_for_each_other() -> None:
    found = played((100, 100), (70, 100), (70, 100), moved=True)
    assert list(moves(found)) == [(pytest.approx(1.5 * CYCLE_S), "speeds-of")]
    assert not inversions(cycles(found)), "in the second cycle it moves, in the third it is elsewhere"


def test_two_scenarios_make_one_table_and_one_picture(tmp_path: Path) -> None:
    found = _findings({EQUAL.name: played((100, 100), (59, 40)), RANKED.name: played((70, 100))})
    assert found.figures == {
        "below_minimum": 1,
        "inversions": 1,
        "moves": 0,
        "accounting_error": 0,
        "worst_latency_s_equal": 2.0,
        "worst_latency_s_ranked": 2.0,
    }
    assert len(found.rows) == 4
    found.publish(tmp_path, as_json=False, console=Console(quiet=True))
    assert (tmp_path / "bench-priorities.png").is_file()

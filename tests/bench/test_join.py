"""`bench join`: its figures, and how pairs are compared."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.bench.experiments.join.bench import together
from springtide.bench.experiments.join.growth import Grown
from springtide.bench.experiments.join.meeting import PACE, Meeting
from springtide.bench.experiments.join.rescale import Rescale, coded, compared
from springtide.bench.harness.findings import Findings
from springtide.bench.harness.trial import Scale, Span, Track
from springtide.metrics.report import EpochReport

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def table(some: list[tuple[int, int]]) -> pa.Table:
    return pa.table({"v": pa.array([x for x, _ in some], "int64"), "v_right": pa.array([y for _, y in some], "int64")})


@given(pairs, pairs)
def test_pairs_are_compared_as_multisets(found: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    lost, duplicated = compared(coded([table(found[:3]), table(found[3:])]), coded([table(expected)]))
    assert lost == (Counter(expected) - Counter(found)).total()
    assert duplicated == (Counter(found) - Counter(expected)).total()


def test_half_of_the_rows_wait_on_each_side_in_the_long_run() -> None:
    meeting = Meeting(rows=PACE, held=20 * PACE)
    assert meeting.span_us == 10_000_000, "ten seconds to either side"


def report(ended_at: float, total_s: float) -> EpochReport:
    return cast(EpochReport, SimpleNamespace(ended_at=ended_at, phases=SimpleNamespace(total_s=total_s)))


@pytest.fixture
def track() -> Track:
    times = [1.0, 1.0, 1.0, 1.5, 2.0, 1.0, 1.0, 1.0]
    ends = np.cumsum(times)
    reports = tuple(report(float(end), time) for end, time in zip(ends, times, strict=True))
    return Track(reports, (Span(Scale(3), 3.1, 4.6, 6.0, moved=9),), 0, 0, (), 2_000_000)


def test_figures_of_all_parts_stand_together(track: Track) -> None:
    drawn: list[Any] = []
    beside = Findings(
        "join", ["contestant", "rows/s", "s", "x"], [["springtide", "5", "1", "1"]], {"rows": 5}, drawn.append
    )
    grown = Grown({100: [1.0, 2.0, 3.0], 10_000: [3.0, 2.5]}, 7_000_000)
    found = together(beside, grown, 10, Rescale(held=1_000), track)
    assert found.figures["growth"] == 1.38
    assert found.figures["growth_state_mb"] == 7
    assert found.figures["rescale_worst_epoch_over_median"] == 2.0
    assert found.figures["rescale_worst_while_starting_over_median"] == 2.0
    assert (found.figures["rows"], found.figures["rescale_moved_slices"]) == (5, 9)
    assert {row[0]: row[4:] for row in found.rows if row[4:]} == {
        "growth": ["1.38", "1.5"],
        "worst epoch while it gets 3": ["2.00", "2.5"],
    }
    assert together(beside, grown, 10, Rescale(), replace(track, lost=3)).figures["lost"] == 3

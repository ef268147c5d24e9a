"""Epoch reports: they survive as lines of JSON, and their sums add up."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import codec
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases

seconds = st.floats(0, 1e6)
count = st.integers(0, 2**53)
instances = st.builds(InstanceReport, count, count, count, seconds, seconds, seconds, seconds, seconds, count)
operators = st.builds(
    OperatorReport,
    st.sampled_from(["counts", "word-counts"]),
    count,
    count,
    count,
    count,
    seconds,
    count,
    count,
    count,
    st.one_of(st.none(), st.integers(-(2**62), 2**62)),
    seconds,
    count,
    count,
    st.lists(instances, max_size=2).map(tuple),
)
reports = st.builds(
    EpochReport,
    st.sampled_from(["app", "a-b_c"]),
    count,
    seconds,
    count,
    st.booleans(),
    count,
    count,
    st.one_of(st.none(), count),
    st.one_of(st.none(), seconds),
    count,
    st.builds(Phases, seconds, seconds, seconds, seconds, seconds),
    st.lists(operators, max_size=2).map(tuple),
    count,
)


@settings(max_examples=60, deadline=None)
@given(report=reports)
def test_a_report_survives_as_one_line_of_json(report: EpochReport) -> None:
    line = codec.dumps(report)
    assert "\n" not in line
    assert codec.loads(EpochReport, line) == report


def test_the_fields_are_there_for_anybody_to_read() -> None:
    report = EpochReport(
        "app", 3, 1.5, 1, False, 10, 5, None, 0.25, 1, Phases(0.1, 0.2), (OperatorReport("counts", 10),)
    )
    fields = json.loads(codec.dumps(report))
    assert (fields["epoch"], fields["lag_rows"], fields["latency_s"], fields["dead_letters"]) == (3, None, 0.25, 1)
    assert fields["operators"][0]["step"] == "counts"
    assert fields["phases"]["compute_s"] == 0.2


def test_the_parts_add_up() -> None:
    assert Phases(1, 2, 4, 8, 16).total_s == 31
    assert InstanceReport(0, idle_s=100, deserialise_s=1, process_s=2, serialise_s=4, cpu_s=50).useful_s == 7


@pytest.mark.parametrize("line", ["", "{", "[]", "{}"])
def test_what_is_no_report_is_an_error(line: str) -> None:
    with pytest.raises(codec.Unreadable):
        codec.loads(EpochReport, line)

"""Durations, column types and source options as people write them."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from springtide import sources
from springtide.dataflow.duration import microseconds, signed_microseconds
from springtide.dataflow.fields import schema_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 minutes", 600_000_000),
        ("1 minute", 60_000_000),
        ("1.5 seconds", 1_500_000),
        ("2days", 172_800_000_000),
        (" 7 milliseconds ", 7_000),
        (timedelta(hours=1), 3_600_000_000),
    ],
)
def test_durations(text: str | timedelta, expected: int) -> None:
    assert microseconds(text) == expected


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "-1 second", "1 fortnight", None, 10])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration.*10 minutes"):
        microseconds(text)


@pytest.mark.parametrize("given", [timedelta(microseconds=-1), "10000001 days", f"{'9' * 400} days", timedelta.max])
def test_a_duration_is_neither_negative_nor_longer_than_event_times_can_bear(given: str | timedelta) -> None:
    with pytest.raises(ValueError, match=r"out of range: expected a duration from 0 to 10000000 days"):
        microseconds(given)


def test_a_duration_may_lie_in_the_past_where_it_makes_sense() -> None:
    assert signed_microseconds("-1 second") == signed_microseconds(timedelta(seconds=-1)) == -1_000_000
    for given in (timedelta.min, timedelta.max, "-10000001 days"):
        with pytest.raises(ValueError, match=r"out of range: expected a duration from "):
            signed_microseconds(given)


def test_columns_by_python_or_arrow_types() -> None:
    schema = schema_of({"word": str, "n": pa.int32(), "at": datetime})
    assert schema == pa.schema([("word", pa.string()), ("n", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    assert schema_of(schema) is schema
    with pytest.raises(TypeError, match=r"'x'.*Arrow type or one of"):
        schema_of({"x": "int"})
    with pytest.raises(TypeError, match=r"Arrow schema or a mapping"):
        schema_of(["x"])


def test_files_that_need_a_schema_say_so() -> None:
    with pytest.raises(ValueError, match=r"'json' need a schema"):
        sources.files("in", format="json")
    with pytest.raises(ValueError, match=r"'count' or 'fail'"):
        sources.files("in", format="json", schema="a INT", malformed="drop")  # type: ignore[arg-type]

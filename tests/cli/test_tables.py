"""No table cuts a heading or a figure, however narrow the terminal."""

import io

import pytest
from rich.console import Console

from springtide.cli.verbs.migrations import migrations_table
from springtide.cli.verbs.plan import plan_table
from springtide.cli.verbs.queries import queries_table
from springtide.cli.verbs.workers import workers_table
from springtide.control.migration_log import Account
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures
from springtide.metrics.report import QueryReport
from springtide.present.tables import GAP, fitting, plain_table

WIDTHS = [80, 100, 160]


def printed(width: int, show) -> str:
    screen = io.StringIO()
    show(Console(file=screen, width=width))
    lines = screen.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert "…" not in screen.getvalue()
    return screen.getvalue()


def words(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wide_table_loses_nothing(width: int) -> None:
    names = [f"heading{i}" for i in range(20)]
    rows = [[f"{i * 1_000_003:,}" for i in range(20)], [f"{i}" for i in range(20)]]
    text = printed(width, lambda terminal: terminal.print(plain_table("a title", names, rows, left=())))
    assert words(text) >= {*names, *rows[0], *rows[1]}


def test_each_part_begins_with_the_key_and_fits() -> None:
    widths = [3, 10, 20, 30, 5, 5, 40]
    parts = fitting(widths, room=50)
    assert [part[0] for part in parts] == [0] * len(parts)
    assert [column for part in parts for column in part[1:]] == [1, 2, 3, 4, 5, 6]
    assert all(sum(widths[i] + GAP for i in part) <= 50 for part in parts)
    assert fitting([3, 100], room=50) == [[0, 1]], "a column that is too wide is alone beside the key"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_column_of_words_wraps_where_nothing_else_helps(width: int) -> None:
    reason = "because " * 40
    text = printed(width, lambda t: t.print(plain_table("", ["no", "why", "n"], [["1", reason, "1,234,567"]], ["why"])))
    assert text.count("because") == 40
    assert "1,234,567" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_migrations(width: int) -> None:
    course = Course("partial_pause", 1.7e9, 1.7e9 + 9)
    measures = MigrationMeasures(1234.5, 1234.6, 1234.7, 1234.8, 1234.9, 1235.5, 123_456_789)
    account = Account(1234, "scale to 12 workers", "cancelled", "", course, measures)
    text = printed(width, lambda terminal: terminal.print(migrations_table("wordcount", [account])))
    assert words(text) >= {
        "restore",
        "drain",
        "rebalance",
        "catch-up",
        "recovery",
        "steady",
        "replayed",
        "partial_pause",
        "123,456,789",
    }


@pytest.mark.parametrize("width", WIDTHS)
def test_workers_queries_and_plan(width: int) -> None:
    worker = {
        "id": "1234",
        "host": "ip-10-123-123-123.eu-central-1.compute.internal",
        "zone": "eu-central-1a",
        "state": "draining",
        "slots": 16,
        "slices": 1024,
        "replicas": 2048,
        "resident_bytes": 123_456_789_012,
    }
    text = printed(width, lambda terminal: terminal.print(workers_table("wordcount", [worker])))
    assert words(text) >= {"1234", "draining", "eu-central-1a", "2,048", "resident"}
    query = QueryReport("a-query-with-a-long-name", 123_456_789, 99_999_999, 23_456_790, 1_000_000, 0.8123, 10, 0.25)
    text = printed(width, lambda terminal: terminal.print(queries_table("wordcount", [query], 20)))
    assert words(text) >= {"a-query-with-a-long-name", "123,456,789", "99,999,999", "priority", "minimum", "letters"}
    operators = {"counts": {"owners": {"1": "0-95", "2": "96-127"}, "replicas": {"2": "0-63"}}}
    plan = {"version": 12, "workers": [{"id": "1"}, {"id": "2"}], "operators": operators}
    text = printed(width, lambda terminal: terminal.print(plan_table("wordcount", plan)))
    assert words(text) >= {"counts", "0-95", "96-127", "0-63"}

"""What the PostgreSQL sink can write, and to which tables; what does not fit is refused with a clear error."""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from postgres_kit import SCHEMA, Output, ask, recorded

from springtide import sinks
from springtide.dataflow.errors import StepFailed
from springtide.testing import Server

EAST = timezone(timedelta(hours=5, minutes=30))
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int8(), [-128, 127]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1]),
    "huge": (pa.uint64(), [0, 2**64 - 1]),
    "single": (pa.float32(), [0.5, -math.inf]),
    "double": (pa.float64(), [0.1, math.nan, math.inf, -math.inf, 1e-300, -0.0]),
    "yes": (pa.bool_(), [True, False]),
    "text": (
        pa.string(),
        ["", "NULL", "\\N", "\\.", ",", '"', '""', "a\tb\nc\r\nd\\", " ö 日本 🌊 ", "'; DROP TABLE log --"],
    ),
    "bytes": (pa.binary(), [b"", b"\x00\xff\\x", bytes(range(256))]),
    "day": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 6, 1, 12, 0, 0, 1, UTC), datetime(1969, 12, 31, 23, tzinfo=EAST).astimezone(UTC)],
    ),
    "wall": (pa.timestamp("us"), [datetime(2024, 6, 1, 12, 30), datetime(1, 1, 1)]),
    "money": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10")]),
    "hour": (pa.time64("us"), [time(23, 59, 59, 999999)]),
}


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_values_come_back_as_they_were(dsn: str, kind: str) -> None:
    arrow, values = VALUES[kind]
    schema = pa.schema([("id", pa.int32()), ('Va lue"%s', arrow)])
    rows = list(enumerate([*values, None]))
    for name, key in (("keyed", ["id"]), ("plain", [])):
        sink = sinks.postgres(dsn, name, key=key, create=True)
        sink.publish(Output(0, rows, schema))
        found = ask(dsn, f"SELECT * FROM {name} ORDER BY id")
        assert [(i, plain(v, kind)) for i, v in found] == [(i, repr(v)) for i, v in rows]


def plain(value: Any, kind: str) -> str:
    """A value as Python would have it: psycopg gives decimals for wide integers, and times in the server's zone."""
    if kind == "huge" and value is not None:
        value = int(value)
    return repr(value.astimezone(UTC) if kind == "moment" and value is not None else value)


def test_a_table_of_ones_own_may_have_other_columns_and_wider_types(dsn: str) -> None:
    ask(dsn, 'CREATE SCHEMA "Sales"')
    ask(
        dsn,
        'CREATE TABLE "Sales"."Counts" (id serial, n numeric(12, 2), word varchar(5) PRIMARY KEY, '
        "at timestamptz DEFAULT now(), note jsonb)",
    )
    schema = pa.schema([*SCHEMA, ("note", pa.string())])
    sinks.postgres(dsn, "Sales.Counts", key="word").publish(Output(0, [("a", 1, '{"x": [1]}')], schema))
    assert ask(dsn, 'SELECT id, n, word, at IS NOT NULL, note FROM "Sales"."Counts"') == [
        (1, Decimal("1.00"), "a", True, {"x": [1]})
    ]
    with pytest.raises(StepFailed, match=r"'out' failed while writing rows.*value too long.*word"):
        sinks.postgres(dsn, "Sales.Counts", key="word").publish(Output(1, [("longer", 1, None)], schema))


def test_nulls_in_a_key_need_an_index_that_takes_them_for_equal(dsn: str, server: Server) -> None:
    ask(dsn, "CREATE TABLE counts (word text UNIQUE, n bigint)")
    sink = sinks.postgres(dsn, "counts", key="word")
    with pytest.raises(StepFailed, match=r"no nulls in the key column 'word'.*got 1; .*NULLS NOT DISTINCT"):
        sink.publish(Output(0, [(None, 1)]))
    if ask(dsn, "SHOW server_version_num")[0][0] < "150000":
        pytest.skip("PostgreSQL before 15 has no such index")
    ask(dsn, "ALTER TABLE counts DROP CONSTRAINT counts_word_key")
    ask(dsn, "CREATE UNIQUE INDEX ON counts (word) NULLS NOT DISTINCT")
    for epoch in (0, 1):
        sink.publish(Output(epoch, [(None, epoch)]))
    assert ask(dsn, "SELECT * FROM counts") == [(None, 1)]


LISTS = pa.schema([("word", pa.string()), ("n", pa.list_(pa.int64()))])
BAD: dict[str, tuple[str, dict[str, Any], pa.Schema, str]] = {
    "no table": ("SELECT", {}, SCHEMA, r"expected 'counts' to be a table, got none of that name; .*create=True"),
    "a view": ("CREATE VIEW counts AS SELECT 1 AS n, '' AS word", {}, SCHEMA, "such as a view"),
    "no column": ("CREATE TABLE counts (word text)", {}, SCHEMA, r"columns \['word', 'n'\], got one without \['n'\]"),
    "no epoch": ("CREATE TABLE counts (word text, n int)", {"epoch": "e"}, SCHEMA, r"one without \['e'\]"),
    "epoch twice": ("SELECT", {"epoch": "n", "create": True}, SCHEMA, r"epoch= a name that no column .* has, got 'n'"),
    "no index": (
        "CREATE TABLE counts (word text, n int, UNIQUE (word, n))",
        {"key": "word"},
        SCHEMA,
        r"a unique index on exactly \(word\), got one without; CREATE UNIQUE INDEX ON counts \(word\)",
    ),
    "partial index": (
        "CREATE TABLE counts (word text, n int); CREATE UNIQUE INDEX ON counts (word) WHERE n > 0",
        {"key": "word"},
        SCHEMA,
        "unique index on exactly",
    ),
    "no key": ("SELECT", {"key": "words", "create": True}, SCHEMA, r"a key among the columns .* got \['words'\]"),
    "another type": (
        "CREATE TABLE counts (word text, n date)",
        {},
        SCHEMA,
        r"column 'n' takes int64, such as bigint, got one of type date",
    ),
    "a list": ("SELECT", {"create": True}, LISTS, r"column 'n': expected numbers.* got list<.*to_json"),
    "a list, no create": ("CREATE TABLE counts (word text, n text)", {}, LISTS, r"column 'n': expected numbers"),
    "no schema": ("SELECT", {"table": "no.where", "create": True}, SCHEMA, r"says: schema \"no\" does not exist"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_table_that_does_not_fit_is_refused_before_a_row_is_sent(dsn: str, case: str) -> None:
    prepare, options, schema, message = BAD[case]
    ask(dsn, prepare)
    sink = sinks.postgres(dsn, **({"table": "counts"} | options))
    with pytest.raises(StepFailed, match=message) as failed:
        sink.publish(Output(5, [("a", 1)], schema))
    assert str(failed.value).startswith("step 'out' failed while publishing epoch 5: ")
    assert dsn.split(":")[2].split("@")[0] not in str(failed.value)


def test_a_row_that_the_table_refuses_leaves_the_epoch_out_until_it_is_mended(dsn: str) -> None:
    ask(dsn, "CREATE TABLE log (word text, n bigint CHECK (n > 0))")
    sink = sinks.postgres(dsn, "log")
    with pytest.raises(StepFailed, match=r'violates check constraint "log_n_check"; Failing row'):
        sink.publish(Output(0, [("a", 1), ("b", 0)]))
    assert ask(dsn, "SELECT * FROM log") == []
    assert recorded(dsn) == [("app/1", "out", -1)], "who publishes, and no epoch"
    ask(dsn, "ALTER TABLE log DROP CONSTRAINT log_n_check")
    sink.publish(Output(0, [("a", 1), ("b", 0)]))
    assert len(ask(dsn, "SELECT * FROM log")) == 2


def test_a_wrong_password_and_a_dsn_that_is_none_do_not_show_it(server: Server) -> None:
    wrong = f"host=127.0.0.1 port={server.port} user=springtide password=s3cr3t-x dbname=postgres"
    sink = sinks.postgres(wrong, "log")
    with pytest.raises(StepFailed, match=r"connect to postgresql://springtide@127.0.0.1:\d+/postgres: ") as failed:
        sink.publish(Output(0))
    with pytest.raises(ValueError, match="expected a dsn") as refused:
        sinks.postgres("postgresql://u:s3cr3t-x@h:port:5/x y=z", "log")
    with pytest.raises(ValueError, match="expected a dsn") as odd:
        sinks.postgres("s3cr3t-x", "log")
    told = [repr(sink), str(sink), str(sink.dsn), *map(str, (failed.value, refused.value, odd.value))]
    assert failed.value.__cause__ is None
    assert not any("s3cr3t-x" in text for text in told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ""}, "a table's name"),
        ({"table": "a."}, "a table's name"),
        ({"key": ["a", "a"]}, "different column names"),
        ({"key": [1]}, "different column names"),
        ({"key": "a", "epoch": "a"}, "not in the key"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sinks.postgres("dbname=x", **({"table": "t"} | options))

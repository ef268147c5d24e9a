"""Conditions against an oracle in plain Python, which computes with None row by row."""

import math
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.conditions.condition import SqlCondition
from springtide.conditions.errors import BadCondition, ConditionFailed
from springtide.errors import SpringtideError

Row = dict[str, Any]
Expression = tuple[str, Callable[[Row], Any]]
"""SQL text, and what it means."""

ROWS = pa.schema(
    {"a": pa.int64(), "b": pa.int32(), "f": pa.float64(), "s": pa.string(), "t": pa.large_string(), "x": pa.bool_()}
)


def lifted(function: Callable[..., Any], *parts: Callable[[Row], Any]) -> Callable[[Row], Any]:
    """Null if any argument is."""

    def call(row: Row) -> Any:
        values = [part(row) for part in parts]
        return None if any(value is None for value in values) else function(*values)

    return call


def both(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Any, right: Any) -> Any:
    return negated(both(negated(left), negated(right)))


def negated(value: Any) -> Any:
    return None if value is None else not value


def equal(left: Any, right: Any) -> bool:
    return left == right or (left != left and right != right)


def less(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return left.encode() < right.encode()
    return left < right or (left == left and right != right)


def rest(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return math.fmod(left, right) if math.isfinite(left) and right == right else math.nan


def member(value: Any, members: list[Any]) -> Any:
    found: Any = False
    for one in members:
        found = either(found, None if value is None or one is None else equal(value, one))
    return found


def likes(pattern: str) -> Callable[[str], bool]:
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    return lambda text: re.fullmatch("".join(parts), text, re.DOTALL) is not None


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def column(name: str) -> Expression:
    return name, lambda row: row[name]


def constant(text: str, value: Any) -> Expression:
    return text, lambda row: value


def numbers(depth: int) -> st.SearchStrategy[Expression]:
    leaves = st.one_of(
        st.sampled_from([column("a"), column("b"), column("f"), constant("NULL", None), constant("2e0", 2.0)]),
        st.integers(-5, 5).map(lambda n: constant(str(n), n)),
    )
    if not depth:
        return leaves
    inner = numbers(depth - 1)
    operators: dict[str, Callable[..., Any]] = {
        "+": lambda left, right: left + right,
        "-": lambda left, right: left - right,
        "*": lambda left, right: left * right,
        "/": lambda left, right: None if right == 0 else float(left) / float(right),
        "%": rest,
    }

    def binary(drawn: tuple[str, Expression, Expression]) -> Expression:
        sign, (left, of_left), (right, of_right) = drawn
        return f"({left}) {sign} ({right})", lifted(operators[sign], of_left, of_right)

    def chosen(drawn: tuple[Expression, Expression]) -> Expression:
        (left, of_left), (right, of_right) = drawn

        def first(row: Row) -> Any:
            return of_right(row) if of_left(row) is None else of_left(row)

        return f"COALESCE({left}, {right})", first

    def case(drawn: tuple[Expression, Expression, Expression]) -> Expression:
        (when, holds), (then, of_then), (other, of_other) = drawn
        text = f"CASE WHEN {when} THEN {then} ELSE {other} END"
        return text, lambda row: of_then(row) if holds(row) is True else of_other(row)

    return st.one_of(
        leaves,
        st.tuples(st.sampled_from(sorted(operators)), inner, inner).map(binary),
        inner.map(lambda e: (f"-({e[0]})", lifted(lambda value: -value, e[1]))),
        st.tuples(inner, inner).map(chosen),
        st.tuples(truths(depth - 1), inner, inner).map(case),
    )


letters = st.text("abA_%é'\n", max_size=3)
strings: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from([column("s"), column("t"), constant("NULL", None)]),
    letters.map(lambda text: constant(quoted(text), text)),
    st.sampled_from(
        [
            ("LOWER(s)", lifted(str.lower, lambda row: row["s"])),
            ("upper(t)", lifted(str.upper, lambda row: row["t"])),
            ("coalesce(s, t, 'a')", lambda row: next(v for v in (row["s"], row["t"], "a") if v is not None)),
        ]
    ),
)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": equal,
    "==": equal,
    "<>": lambda left, right: not equal(left, right),
    "!=": lambda left, right: not equal(left, right),
    "<": less,
    "<=": lambda left, right: not less(right, left),
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: not less(left, right),
}


def truths(depth: int) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from([column("x"), constant("TRUE", True), constant("false", False), constant("NULL", None)])
    if not depth:
        return leaves
    inner = truths(depth - 1)
    pairs = st.one_of(st.tuples(numbers(depth - 1), numbers(depth - 1)), st.tuples(strings, strings))

    def compared(drawn: tuple[str, tuple[Expression, Expression]]) -> Expression:
        sign, ((left, of_left), (right, of_right)) = drawn
        return f"({left}) {sign} ({right})", lifted(COMPARISONS[sign], of_left, of_right)

    def between(drawn: tuple[Expression, Expression, Expression]) -> Expression:
        (value, of_value), (low, of_low), (high, of_high) = drawn

        def holds(row: Row) -> Any:
            above = lifted(COMPARISONS["<="], of_low, of_value)(row)
            return both(above, lifted(COMPARISONS["<="], of_value, of_high)(row))

        return f"({value}) BETWEEN ({low}) AND ({high})", holds

    def listed(drawn: tuple[Expression, list[Expression]]) -> Expression:
        (value, of_value), members = drawn
        text = f"({value}) IN ({', '.join(m for m, _ in members)})"
        return text, lambda row: member(of_value(row), [of(row) for _, of in members])

    def joined(drawn: tuple[bool, Expression, Expression]) -> Expression:
        every, (left, of_left), (right, of_right) = drawn
        if every:
            return f"({left}) AND ({right})", lambda row: both(of_left(row), of_right(row))
        return f"({left}) OR ({right})", lambda row: either(of_left(row), of_right(row))

    def turned(drawn: tuple[str, Expression]) -> Expression:
        how, (text, holds) = drawn
        meaning: dict[str, Expression] = {
            "not": (f"NOT ({text})", lambda row: negated(holds(row))),
            "null": (f"({text}) IS NULL", lambda row: holds(row) is None),
            "known": (f"({text}) IS NOT NULL", lambda row: holds(row) is not None),
            "true": (f"({text}) IS TRUE", lambda row: holds(row) is True),
            "not false": (f"({text}) IS NOT FALSE", lambda row: holds(row) is not False),
        }
        return meaning[how]

    def like(drawn: tuple[Expression, str, bool]) -> Expression:
        (text, value), pattern, plainly = drawn
        fits = lifted(likes(pattern), value)
        if plainly:
            return f"{text} LIKE {quoted(pattern)}", fits
        return f"{text} NOT LIKE {quoted(pattern)}", lambda row: negated(fits(row))

    values = numbers(depth - 1)
    return st.one_of(
        leaves,
        st.tuples(st.sampled_from(sorted(COMPARISONS)), pairs).map(compared),
        st.tuples(values, values, values).map(between),
        st.one_of(
            st.tuples(values, st.lists(values, min_size=1, max_size=3)),
            st.tuples(strings, st.lists(strings, min_size=1, max_size=3)),
        ).map(listed),
        st.tuples(st.booleans(), inner, inner).map(joined),
        st.tuples(st.sampled_from(["not", "null", "known", "true", "not false"]), inner).map(turned),
        st.tuples(strings, letters, st.booleans()).map(like),
    )


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


some_rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": maybe(st.integers(-5, 5)),
            "b": maybe(st.integers(-5, 5)),
            "f": maybe(st.sampled_from([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan])),
            "s": maybe(letters),
            "t": maybe(letters),
            "x": maybe(st.booleans()),
        }
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(truths(3), some_rows)
def test_a_condition_is_true_of_the_rows_that_sql_says(expression: Expression, rows: list[Row]) -> None:
    text, holds = expression
    condition = SqlCondition.of("agg.count", text)
    condition.check(ROWS)
    found = condition(pa.Table.from_pylist(rows, schema=ROWS)).to_pylist()
    assert found == [holds(row) is True for row in rows]


def truth(text: str, **row: Any) -> bool:
    """Whether a condition is true of one row."""
    rows = pa.table({name: value if isinstance(value, pa.Array) else pa.array([value]) for name, value in row.items()})
    rows = rows if row else pa.table({"nothing": [0]})
    condition = SqlCondition.of("agg.count", text)
    condition.check(rows.schema)
    (found,) = condition(rows).to_pylist()
    return bool(found)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "at = TIMESTAMP '2026-01-01 12:00:00'",
        "at = TIMESTAMP '2026-01-01T13:00:00+01:00'",
        "at = TIMESTAMP '2026-01-01 12:00:00.000000Z'",
        "at > TIMESTAMP '2026-01-01'",
        "at > DATE '2026-01-01' AND day = DATE '2026-01-01' AND at >= day",
        "at + INTERVAL '10' SECOND = TIMESTAMP '2026-01-01 12:00:10'",
        "at - INTERVAL 2 HOURS = TIMESTAMP '2026-01-01 10:00:00'",
        "at + INTERVAL '10 seconds' > at",
        "at - day = INTERVAL '12' HOUR",
        "day + INTERVAL '1' DAY = TIMESTAMP '2026-01-02'",
        "at + INTERVAL -1 DAY < day",
        "at - TIMESTAMP '2026-01-01' BETWEEN INTERVAL '0.5' DAY AND INTERVAL '1' WEEK",
        "at IN (TIMESTAMP '2026-01-01 12:00:00', NULL)",
        "plain = at",
        "amount = 12.50 AND amount > 12 AND amount < 12.6e0 AND amount * 2 = 25",
        "amount IN (1, 12.5)",
        "amount / 2 = 6.25",
        "big = 9007199254740993 AND big > 9007199254740992.5",
        "big < 9223372036854775808 AND big > -9223372036854775808",
        "0.908 * n > 6.3 AND n % 3 = 1 AND -n % 3 = -1 AND n / 2 = 3.5",
        "small * 1000 = 127000",
        "`odd name` = 1 AND `left` = 2",
        "s = 'it''s' AND s = 'it\\'s' AND s LIKE '__\\'_'",
        "'50%' LIKE '50\\%' AND NOT '500' LIKE '50\\%'",
        r"path LIKE 'C:\\\\Users%' AND path LIKE '%\\\\ann' AND path LIKE '%rs\\\\a%'",
        r"path LIKE 'C:\\\\_____\\\\ann'",
        r"NOT path LIKE '%Users' AND NOT path LIKE 'Users%' AND NOT path LIKE 'C:\\\\%\\\\'",
        "CASE n WHEN 6 THEN FALSE WHEN 7 THEN TRUE END",
        "CASE WHEN n > 6 THEN 'many' ELSE 'few' END = \"many\"",
        "n = 7 -- lucky",
    ],
)
def test_times_decimals_and_spelling(text: str) -> None:
    assert truth(
        text,
        at=pa.array([NOON], pa.timestamp("us", "UTC")),
        plain=pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        day=date(2026, 1, 1),
        amount=pa.array([Decimal("12.50")], pa.decimal128(12, 2)),
        big=2**53 + 1,
        n=7,
        small=pa.array([127], pa.int8()),
        s="it's",
        path="C:\\Users\\ann",
        **{"odd name": 1, "left": 2},
    )


def test_nothing_is_not_true() -> None:
    assert [truth(text, v=pa.nulls(1)) for text in ("v", "NOT v", "v = 1", "v IS NULL")] == [False, False, False, True]


def test_decimals_with_too_many_digits_are_told_with_what_would_do() -> None:
    with pytest.raises(BadCondition, match=r"precision out of range.*`price \* 1e0`, makes doubles"):
        truth("n * 1.0 * n > 1", n=7)
    assert truth("n * 1e0 * n = 49", n=7)


def test_what_is_divided_by_zero_is_unknown() -> None:
    assert not truth("n / 0 > 1 OR n % 0 = 1", n=7)
    assert truth("(n / 0) IS NULL AND (n % 0) IS NULL AND (1 / (n - 7)) IS NULL", n=7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no expression"),
        ("price <", "near"),
        ("price < 1; DROP TABLE bids", "`"),
        ("SELECT 1", "SELECT 1"),
        ("COUNT(*) > 1", "COUNT"),
        ("price LIKE 'a!%' ESCAPE '!'", "ESCAPE"),
        ("price LIKE other", "pattern is not a string"),
        ("price IN (SELECT 1)", "SELECT 1"),
        ("price IN ()", "IN"),
        ("price RLIKE 'a'", "RLIKE"),
        ("price BETWEEN SYMMETRIC 1 AND 2", "SYMMETRIC"),
        ("CAST(price AS INT) = 1", "CAST"),
        ("at > INTERVAL '1' MONTH", "microseconds, milliseconds, seconds"),
        ("at > INTERVAL 'a' DAY", "INTERVAL"),
        ("at > TIMESTAMP 'noon'", "noon"),
        ("TIMESTAMP(at) > other", "at"),
        ("a.b.c = 1", "a.b.c"),
        ("price AS cheap", "cheap"),
        ("*", "`*`"),
        ("price <=> 1", "<=>"),
        ("price < 2e0-1", "'2e0-1', which is no number"),
        ("(" * 20_000 + "1" + ")" * 20_000 + " = 1", "too many parts"),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_text_and_what_is(text: str, told: str) -> None:
    with pytest.raises(BadCondition) as error:
        SqlCondition.of("agg.count", text)
    assert told in str(error.value)
    assert str(error.value).startswith(f"agg.count where={text!r}: expected ")
    assert "BETWEEN, LIKE" in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_condition_is_text() -> None:
    with pytest.raises(BadCondition, match="as SQL text, got int"):
        SqlCondition.of("agg.count", 3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prize < 3", r"expected columns among \['a', 'b', 'f', 's', 't', 'x'\], got 'prize'"),
        ("bids.a < 3", "got 'bids.a'"),
        ("a", "true or false, got int64"),
        ("s = 1", r"types that go together \(s string\)"),
        ("s < TIMESTAMP '2026-01-01'", "types that go together"),
        ("LOWER(a) = 'x'", "types that go together"),
        ("a AND x", "types that go together"),
        ("s / 2 = 1", "is no number"),
        ("x = 1", "types that go together"),
    ],
)
def test_what_does_not_fit_the_columns_is_told_before_there_are_rows(text: str, told: str) -> None:
    with pytest.raises(BadCondition, match=told):
        SqlCondition.of("agg.count", text).check(ROWS)


def test_integers_that_do_not_fit_are_an_error_and_no_wrong_answer() -> None:
    with pytest.raises(ConditionFailed, match=r"where='n \* 4 > 1': expected numbers that fit 64 bits") as error:
        truth("n * 4 > 1", n=2**62)
    assert isinstance(error.value, SpringtideError)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value), "a worker can send it to the driver"
    assert truth("n * 4.0 > 1", n=2**62)


def test_conditions_that_are_written_alike_are_equal() -> None:
    assert SqlCondition.of("agg.count", "a < 1") == SqlCondition.of("agg.sum", "a < 1")
    assert SqlCondition.of("agg.count", "a < 1") != SqlCondition.of("agg.count", "a < 1.0")


def test_a_condition_goes_to_a_worker_without_the_parser() -> None:
    condition = pickle.dumps(SqlCondition.of("agg.count", "at > TIMESTAMP '2026-01-01' AND n < 1.5"))
    program = f"import pickle, sys, springtide; pickle.loads({condition!r}); print('sqlglot' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_condition_can_be_moved_to_other_columns() -> None:
    condition = SqlCondition.of("agg.count", "n BETWEEN 1 AND 3 AND at < at + INTERVAL '1' DAY")
    assert [str(column) for column in condition.columns] == ["n", "at"]
    moved = condition.over(lambda column: type(column)(column.name + "_2"))
    rows = pa.table({"n_2": [0, 2], "at_2": pa.array([NOON, NOON + timedelta(1)])})
    assert moved(rows).to_pylist() == [False, True]

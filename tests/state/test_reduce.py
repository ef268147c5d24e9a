"""A user's reducer: what it sees, what it may return, and the errors that say what was wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from state_kit import Farm, Row

from springtide.state.errors import BadUpdate
from springtide.state.logic import Groups
from springtide.state.per_key import PerKey
from springtide.state.reduce import BatchReducer, Reduced, ReduceLogic

KEY = pa.schema([("k", pa.string())])
ROWS = pa.schema([("k", pa.string()), ("v", pa.int64())])
STATE = pa.schema([("n", pa.int32())])
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int32())])

ONE = [{"k": "a", "v": 1}]
TWO = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "a", "v": 3}]


def per_key(function: Callable[..., Any]) -> Farm:
    return Farm(ReduceLogic(KEY, ROWS, PerKey(function, STATE, OUTPUT), STATE, OUTPUT), ROWS)


def vectorised(function: BatchReducer) -> Farm:
    return Farm(ReduceLogic(KEY, ROWS, function, STATE, OUTPUT), ROWS)


def test_a_reducer_sees_its_key_its_rows_and_its_state() -> None:
    calls: list[tuple[Row, list[Row], Row | None]] = []

    def watch(key: Row, rows: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
        calls.append((key, rows, state))
        return {"n": len(rows)}, []

    farm = per_key(watch)
    farm.epoch(TWO)
    farm.epoch(ONE)
    assert sorted(calls[:2], key=lambda call: str(call[0])) == [
        ({"k": "a"}, [{"k": "a", "v": 1}, {"k": "a", "v": 3}], None),
        ({"k": "b"}, [{"k": "b", "v": 2}], None),
    ]
    assert calls[2:] == [({"k": "a"}, [{"k": "a", "v": 1}], {"n": 2})]


def test_rows_of_a_key_keep_the_order_in_which_they_came() -> None:
    seen: dict[str, list[int]] = {}

    def watch(key: Row, rows: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
        seen[key["k"]] = [r["v"] for r in rows]
        return {"n": 0}, []

    rows = [{"k": f"key {i % 3}", "v": i} for i in range(3000)]
    per_key(watch).epoch(rows[:1000], rows[1000:])
    assert seen == {f"key {k}": list(range(k, 3000, 3)) for k in range(3)}


def test_a_forgotten_key_starts_anew() -> None:
    farm = per_key(lambda key, rows, state: ({"n": (state or {"n": 0})["n"] + 1}, []) if rows[0]["v"] else (None, []))
    for value in (1, 1, 0, 1):
        farm.epoch([{"k": "a", "v": value}])
    assert farm.stored() == [{"k": "a", "n": 1}]


def test_a_reducer_may_give_any_number_of_output_rows() -> None:
    farm = per_key(lambda key, rows, state: ({"n": 0}, [{"n": r["v"], "k": "!"} for r in rows if r["v"] > 1]))
    assert sorted(r["n"] for r in farm.epoch(TWO).output) == [2, 3]


def test_null_as_a_state_value_is_not_the_same_as_no_state() -> None:
    states: list[Row | None] = []

    def watch(key: Row, rows: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
        states.append(state)
        return {"n": None}, []

    farm = per_key(watch)
    farm.epoch(ONE)
    farm.epoch(ONE)
    assert states == [None, {"n": None}]
    assert farm.keys == 1


@pytest.mark.parametrize(
    ("result", "expects", "got"),
    [
        (None, r"result: expected \(state or None, output rows\)", "None"),
        ({"n": 1}, r"result: expected \(state or None, output rows\)", "{'n': 1}"),
        (({"n": 1}, [], 3), r"result: expected \(state or None, output rows\)", "3"),
        ((3, []), r"state: expected a mapping with keys \['n'\]", "int"),
        (({"m": 1}, []), r"state: expected a mapping with keys \['n'\]", r"\['m'\]"),
        (({"n": 1, "m": 1}, []), r"state: expected a mapping with keys \['n'\]", r"\['m', 'n'\]"),
        (({"n": "x"}, []), "state: expected types n int32", "x"),
        (({"n": 2**40}, []), "state: expected types n int32", "1099511627776"),
        (({"n": 2**70}, []), "state: expected types n int32", "too large"),
        (({"n": 1}, [{"n": 1}]), r"output row: expected a mapping with keys \['k', 'n'\]", r"\['n'\]"),
        (({"n": 1}, [None]), r"output row: expected a mapping with keys \['k', 'n'\]", "NoneType"),
        (({"n": 1}, {"k": "a", "n": 1}), r"output row: expected a mapping", "str"),
        (({"n": 1}, None), "output rows: expected a list of rows", "NoneType"),
        (({"n": 1}, [{"k": 1, "n": 1}]), "output: expected types k string, n int32", "int"),
        (({"n": 1}, [{"k": "a", "n": 2**70}]), "output: expected types k string, n int32", "too large"),
        (({"n": 1}, [{"k": "\ud800", "n": 1}]), "output: expected types k string, n int32", "surrogates not allowed"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(result: Any, expects: str, got: str) -> None:
    farm = per_key(lambda key, rows, state: result)
    with pytest.raises(BadUpdate, match=f"(?s)the reducer's {expects}.*got .*{got}"):
        farm.epoch(ONE)
    assert (farm.keys, farm.runs) == (0, ())


def counts(groups: Groups) -> pa.Array:
    return pa.array(np.bincount(groups.group_of_row))


def whole(groups: Groups) -> Reduced:
    return Reduced(pa.table({"n": counts(groups)}), groups.keys.append_column("n", counts(groups)))


def test_a_vectorised_reducer_gets_tables_and_its_types_are_cast() -> None:
    farm = vectorised(whole)
    assert sorted((r["k"], r["n"]) for r in farm.epoch(TWO).output) == [("a", 2), ("b", 1)]
    assert sorted((r["k"], r["n"]) for r in farm.stored()) == [("a", 2), ("b", 1)]


def test_a_vectorised_reducer_is_not_called_without_rows() -> None:
    def never(groups: Groups) -> Reduced:
        raise AssertionError("called")

    assert vectorised(never).epoch().output == []


@pytest.mark.parametrize(
    ("reducer", "expects", "got"),
    [
        (lambda g: None, "result: expected springtide.Reduced", "NoneType"),
        (lambda g: (1, 2), "result: expected springtide.Reduced", "tuple"),
        (
            lambda g: Reduced(pa.table({"n": [1]}), OUTPUT.empty_table()),
            r"state: expected one row a key \(2\)",
            "1 rows",
        ),
        (
            lambda g: Reduced(pa.table({"m": counts(g)}), OUTPUT.empty_table()),
            r"state: expected columns \['n'\]",
            "'m'",
        ),
        (
            lambda g: Reduced(pa.table([counts(g), counts(g)], ["n", "n"]), OUTPUT.empty_table()),
            r"state: expected columns \['n'\]",
            "'n', 'n'",
        ),
        (
            lambda g: Reduced(pa.table({"n": ["x", "y"]}), OUTPUT.empty_table()),
            "state: expected types n int32",
            "n string",
        ),
        (
            lambda g: Reduced(pa.table({"n": [1, 2**40]}), OUTPUT.empty_table()),
            "state: expected types n int32",
            "n int64",
        ),
        (
            lambda g: Reduced(pa.table({"n": [[1], [2]]}), OUTPUT.empty_table()),
            "state: expected types n int32",
            "n list",
        ),
        (lambda g: Reduced(pa.table({"n": counts(g)}), g.keys), r"output: expected columns \['k', 'n'\]", r"\['k'\]"),
        (
            lambda g: Reduced(pa.table({"n": counts(g)}), OUTPUT.empty_table(), np.array([True])),
            r"keep: expected one boolean a key \(2\)",
            "1",
        ),
        (
            lambda g: Reduced(pa.table({"n": counts(g)}), OUTPUT.empty_table(), np.array([1, 0])),
            r"keep: expected one boolean a key \(2\)",
            "int64",
        ),
        (lambda g: Reduced({"n": [1, 2]}, OUTPUT.empty_table()), "state: expected a pyarrow.Table", "dict"),
        (lambda g: Reduced(pa.table({"n": counts(g)}), []), "output: expected a pyarrow.Table", "list"),
    ],
)
def test_a_vectorised_result_that_does_not_fit_is_refused(reducer: BatchReducer, expects: str, got: str) -> None:
    farm = vectorised(reducer)
    with pytest.raises(BadUpdate, match=f"(?s)the reducer's {expects}.*got .*{got}"):
        farm.epoch(TWO)
    assert (farm.keys, farm.runs) == (0, ())


def test_columns_beyond_those_declared_are_left_out() -> None:
    farm = vectorised(lambda g: Reduced(pa.table({"more": counts(g), "n": counts(g)}), OUTPUT.empty_table()))
    farm.epoch(ONE)
    assert farm.stored() == [{"k": "a", "n": 1}]


def test_an_error_of_the_function_comes_through_as_it_is() -> None:
    def fails(key: Row, rows: list[Row], state: Row | None) -> Any:
        raise KeyError("price")

    farm = per_key(fails)
    with pytest.raises(KeyError, match="price"):
        farm.epoch(ONE)
    assert farm.runs == ()

"""SQL text to a tree. Only this module knows the parser; workers never load it."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, DecimalException

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from springtide.conditions.tree import Call, Column, Literal, Node

_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")
_BINARY: Mapping[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "=",
    exp.LT: "<",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_UNARY: Mapping[type[exp.Expr], str] = {exp.Not: "not", exp.Neg: "negate", exp.Lower: "lower", exp.Upper: "upper"}
_HOW_DIVISIONS_ARE_TYPED = {"typed", "safe"}


class Unreadable(Exception):
    """What was found where something else was expected."""

    def __init__(self, got: str) -> None:
        super().__init__(got)
        self.got = got


class Conditions(Spark):
    """Spark's SQL, in which two quotes within a string stand for one."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 (the parser's own way to say it)


def read(text: str) -> Node:
    """The tree of a condition; Unreadable if it is none, or has more than is allowed."""
    try:
        return _node(sqlglot.parse_one(text, dialect=Conditions))
    except RecursionError:
        raise Unreadable("too many parts within each other") from None
    except SqlglotError as error:
        raise Unreadable(_reason(error)) from error


def _reason(error: SqlglotError) -> str:
    """Where and why the parser gave up, on one line and without a terminal's colours."""
    errors: list[dict[str, object]] = getattr(error, "errors", [])
    if not errors:
        return "text that is no expression"
    found = errors[0]
    return f"{found['description']}, in column {found['col']} near {found['highlight']!r}"


def _node(found: exp.Expr) -> Node:
    kind = type(found)
    if kind in _BINARY:
        _only(found, "this", "expression", *(_HOW_DIVISIONS_ARE_TYPED if kind is exp.Div else ()))
        return Call(_BINARY[kind], (_node(found.this), _node(found.expression)))
    if kind in _UNARY:
        _only(found, "this")
        return _unary(_UNARY[kind], _node(found.this))
    if kind not in _OTHERS:
        raise Unreadable(_told(found))
    return _OTHERS[kind](found)


def _unary(function: str, argument: Node) -> Node:
    """A negative number is a literal."""
    match argument:
        case Literal(value) if function == "negate" and isinstance(value, int | float | Decimal | timedelta):
            return Literal(-value)
    return Call(function, (argument,))


def _only(found: exp.Expr, *known: str) -> None:
    """Refuse what is said beside the known parts, such as an ESCAPE: to ignore it would change the meaning."""
    if any(value for name, value in found.args.items() if name not in known):
        raise Unreadable(_told(found))


def _told(found: exp.Expr) -> str:
    return f"`{found.sql(dialect=Conditions, comments=False)}`"


def _column(found: exp.Expr) -> Node:
    _only(found, "this", "table")
    if not isinstance(found.this, exp.Identifier):
        raise Unreadable(_told(found))
    side = found.args.get("table")
    return Column(found.this.name, None if side is None else side.name)


def _literal(found: exp.Expr) -> Node:
    text = str(found.this)
    if found.args.get("is_string"):
        return Literal(text)
    try:
        if text.isdigit():
            whole = int(text)
            return Literal(whole if whole < 1 << 63 else Decimal(text))
        return Literal(float(text) if "e" in text.lower() else Decimal(text))
    except (DecimalException, ValueError):
        raise Unreadable(f"{text!r}, which is no number") from None


def _time(found: exp.Expr) -> Node:
    """TIMESTAMP '…' or DATE '…'."""
    _only(found, "this", "to", "_type")
    kind = found.args["to"].this
    if not isinstance(found.this, exp.Literal) or not found.this.is_string:
        raise Unreadable(_told(found))
    text = str(found.this.this)
    try:
        if kind == exp.DataType.Type.DATE:
            return Literal(date.fromisoformat(text))
        if kind in (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ):
            return Literal(datetime.fromisoformat(text))
    except ValueError:
        pass
    raise Unreadable(_told(found))


def _interval(found: exp.Expr) -> Node:
    _only(found, "this", "unit")
    unit = found.args.get("unit")
    name = "" if unit is None else unit.name.lower().removesuffix("s")
    if name not in _UNITS or not isinstance(found.this, exp.Literal):
        raise Unreadable(f"{_told(found)}, and not a number of {', '.join(f'{unit}s' for unit in _UNITS)}")
    try:
        return Literal(timedelta(**{f"{name}s": float(Decimal(str(found.this.this)))}))
    except (DecimalException, OverflowError, ValueError):
        raise Unreadable(_told(found)) from None


def _is(found: exp.Expr) -> Node:
    _only(found, "this", "expression")
    match found.expression:
        case exp.Null():
            return Call("is null", (_node(found.this),))
        case exp.Boolean() as wanted:
            return Call("and", (Call("is known", (_node(found.this),)), Call("=", (_node(found.this), _node(wanted)))))
    raise Unreadable(_told(found))


def _in(found: exp.Expr) -> Node:
    _only(found, "this", "expressions")
    values = found.args.get("expressions") or []
    if not values:
        raise Unreadable(_told(found))
    return Call("in", tuple(_node(one) for one in (found.this, *values)))


def _between(found: exp.Expr) -> Node:
    _only(found, "this", "low", "high")
    value, low, high = (_node(found.args[part]) for part in ("this", "low", "high"))
    return Call("and", (Call("<=", (low, value)), Call("<=", (value, high))))


def _like(found: exp.Expr) -> Node:
    _only(found, "this", "expression", "negate")
    pattern = _node(found.expression)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Unreadable(f"{_told(found)}, whose pattern is not a string")
    like = Call("like", (_node(found.this), pattern))
    return Call("not", (like,)) if found.args.get("negate") else like


def _coalesce(found: exp.Expr) -> Node:
    return Call("coalesce", tuple(_node(one) for one in (found.this, *found.args.get("expressions", ()))))


def _case(found: exp.Expr) -> Node:
    _only(found, "this", "ifs", "default")
    subject = found.args.get("this")
    parts: list[Node] = []
    for each in found.args["ifs"]:
        _only(each, "this", "true")
        when = _node(each.this)
        parts += [when if subject is None else Call("=", (_node(subject), when)), _node(each.args["true"])]
    default = found.args.get("default")
    return Call("case", (*parts, Literal(None) if default is None else _node(default)))


def _comparison(function: str, *, turned: bool = False, negated: bool = False) -> Callable[[exp.Expr], Node]:
    def compare(found: exp.Expr) -> Node:
        _only(found, "this", "expression")
        sides = _node(found.this), _node(found.expression)
        call = Call(function, sides[::-1] if turned else sides)
        return Call("not", (call,)) if negated else call

    return compare


_OTHERS: Mapping[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda found: Literal(bool(found.this)),
    exp.Null: lambda _: Literal(None),
    exp.Paren: lambda found: _node(found.this),
    exp.Cast: _time,
    exp.Interval: _interval,
    exp.NEQ: _comparison("=", negated=True),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison("<", turned=True),
    exp.GTE: _comparison("<=", turned=True),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Coalesce: _coalesce,
    exp.Case: _case,
}

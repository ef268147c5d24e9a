"""Conditions over whole columns, in SQL's logic of true, false and null.

NaN equals NaN and is greater than any number, as in Spark and in the aggregates. Integers are exact: what does not fit
64 bits is an error. A division gives a double, and one by zero gives null.
"""

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.conditions.tree import Column, Literal, Node

Operand = Any
"""An Arrow array, or a scalar that stands for a column of one value."""


def evaluate(node: Node, columns: Mapping[str, pa.Array]) -> Operand:
    """The value of a condition for each row."""
    if isinstance(node, Column):
        return _plain(columns[node.name])
    if isinstance(node, Literal):
        return _plain(pa.scalar(node.value))
    return FUNCTIONS[node.function](*(evaluate(argument, columns) for argument in node.arguments))


def _plain(value: Operand) -> Operand:
    """One type for integers, and one for strings."""
    kind = value.type
    if pa.types.is_integer(kind) and kind not in (pa.int64(), pa.uint64()):
        return value.cast(pa.int64())
    return value.cast(pa.large_string()) if pa.types.is_string(kind) else value


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _together(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Both with types that Arrow takes together: a literal NULL is of any type, and times without a zone are UTC."""
    kinds = left.type, right.type
    if pa.types.is_null(kinds[0]) and pa.types.is_null(kinds[1]):
        return left, right
    if pa.types.is_null(kinds[0]):
        return left.cast(kinds[1]), right
    if pa.types.is_null(kinds[1]):
        return left, right.cast(kinds[0])
    if all(map(_is_time, kinds)) and kinds[0] != kinds[1]:
        unit = "ns" if any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in kinds) else "us"
        common = pa.timestamp(unit, "UTC")
        return left.cast(common), right.cast(common)
    if any(map(pa.types.is_decimal, kinds)) and any(map(pa.types.is_floating, kinds)):
        return left.cast(pa.float64()), right.cast(pa.float64())
    return left, right


def _truth(value: Operand) -> Operand:
    return value.cast(pa.bool_()) if pa.types.is_null(value.type) else value


def _and(left: Operand, right: Operand) -> Operand:
    return pc.and_kleene(_truth(left), _truth(right))


def _or(left: Operand, right: Operand) -> Operand:
    return pc.or_kleene(_truth(left), _truth(right))


def _not(value: Operand) -> Operand:
    return pc.invert(_truth(value))


def _nan(value: Operand) -> Operand:
    return pc.is_nan(value) if pa.types.is_floating(value.type) else pa.scalar(False)


def _equal(left: Operand, right: Operand) -> Operand:
    left, right = map(_truth, _together(left, right))
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type) and pa.types.is_floating(right.type):
        return pc.or_(equal, pc.and_(_nan(left), _nan(right)))
    return equal


def _less(left: Operand, right: Operand) -> Operand:
    left, right = map(_truth, _together(left, right))
    less = pc.less(left, right)
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return pc.or_(less, pc.and_(pc.invert(_nan(left)), _nan(right)))
    return less


def _less_or_equal(left: Operand, right: Operand) -> Operand:
    return pc.invert(_less(right, left))


def _in(value: Operand, *members: Operand) -> Operand:
    found = [member for member in members if isinstance(member, pa.Scalar) and member.type == value.type]
    plain = len(found) == len(members) and not pa.types.is_floating(value.type)
    if plain and isinstance(value, pa.Array) and all(member.is_valid for member in members):
        listed = pa.array([member.as_py() for member in members], value.type)
        return pc.if_else(pc.is_valid(value), pc.is_in(value, listed), pa.scalar(None, pa.bool_()))
    return reduce(_or, (_equal(value, member) for member in members))


def _like(value: Operand, pattern: pa.Scalar) -> Operand:
    text, wanted = _together(value, pattern)[0], pattern.as_py()
    # Arrow takes an escaped backslash for two of them where it compares beginnings, ends or parts.
    return pc.match_substring_regex(text, _expression(wanted)) if "\\" in wanted else pc.match_like(text, wanted)


def _expression(pattern: str) -> str:
    """A pattern of LIKE as a regular expression."""
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    return r"\A(?s:" + "".join(wild.get(part) or rf"\x{{{ord(part[-1]):x}}}" for part in parts) + r")\z"


def _arithmetic(kernel: Callable[[Operand, Operand], Operand]) -> Callable[[Operand, Operand], Operand]:
    def calculate(left: Operand, right: Operand) -> Operand:
        kinds = left.type, right.type
        if any(map(pa.types.is_duration, kinds)):
            left, right = (v.cast(pa.timestamp("us")) if pa.types.is_date(v.type) else v for v in (left, right))
        return left if all(map(pa.types.is_null, kinds)) else kernel(*_together(left, right))

    return calculate


def _divide(left: Operand, right: Operand) -> Operand:
    left, right = (value.cast(pa.float64(), safe=False) for value in _numbers("/", left, right))
    return pc.divide(left, _without_zero(right))


def _modulo(left: Operand, right: Operand) -> Operand:
    """What is left over, with the sign of the dividend."""
    left, right = _together(*_numbers("%", left, right))
    if pa.types.is_null(left.type):
        return left
    right = _without_zero(right)
    if not all(pa.types.is_integer(value.type) for value in (left, right)):
        left, right = (value.cast(pa.float64(), safe=False) for value in (left, right))
        return _fmod(left, right)
    # The size of the divisor does not matter to the sign, and no quotient by a positive number is too large.
    right = pc.abs(right)
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


def _fmod(left: Operand, right: Operand) -> Operand:
    both = pc.and_(pc.is_valid(left), pc.is_valid(right))
    with np.errstate(invalid="ignore"):  # Infinity, or NaN: the result is NaN.
        rest = np.fmod(_filled(left), _filled(right))
    found = pa.array(rest) if rest.ndim else pa.scalar(float(rest))
    return pc.if_else(both, found, pa.scalar(None, pa.float64()))


def _filled(value: Operand) -> Any:
    full = pc.fill_null(value, 1.0)
    return np.float64(full.as_py()) if isinstance(full, pa.Scalar) else full.to_numpy(zero_copy_only=False)


def _without_zero(divisor: Operand) -> Operand:
    return pc.if_else(_equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)


def _numbers(function: str, *values: Operand) -> tuple[Operand, ...]:
    for value in values:
        kind = value.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not numeric and not pa.types.is_null(kind):
            raise pa.ArrowTypeError(f"{function!r} of {kind}, which is no number")
    return values


def _text(value: Operand) -> Operand:
    return value.cast(pa.large_string()) if pa.types.is_null(value.type) else value


def _case(*parts: Operand) -> Operand:
    *whens, otherwise = parts
    for when, then in reversed(list(zip(whens[::2], whens[1::2], strict=True))):
        otherwise = pc.if_else(pc.fill_null(_truth(when), False), *_together(then, otherwise))
    return otherwise


def _coalesce(*values: Operand) -> Operand:
    return reduce(lambda first, then: pc.coalesce(*_together(first, then)), values)


FUNCTIONS: Mapping[str, Callable[..., Operand]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "=": _equal,
    "<": _less,
    "<=": _less_or_equal,
    "is null": pc.is_null,
    "is known": pc.is_valid,
    "in": _in,
    "like": _like,
    "+": _arithmetic(pc.add_checked),
    "-": _arithmetic(pc.subtract_checked),
    "*": _arithmetic(pc.multiply_checked),
    "/": _divide,
    "%": _modulo,
    "negate": lambda value: value if pa.types.is_null(value.type) else pc.negate_checked(value),
    "lower": lambda value: pc.utf8_lower(_text(value)),
    "upper": lambda value: pc.utf8_upper(_text(value)),
    "coalesce": _coalesce,
    "case": _case,
}

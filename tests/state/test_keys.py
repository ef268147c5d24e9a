"""Keys: their equality, their place on the ring, and how rows are brought together."""

import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import canon

from springtide.state.errors import UnsupportedKey
from springtide.state.group import group
from springtide.state.keys import canonical, check_key_type, same
from springtide.state.layout import Layout
from springtide.state.position import MAX_SLICES, positions, slice_bits, slice_of, slice_starts

NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]

columns = st.one_of(
    st.tuples(st.just(pa.float64()), st.lists(st.sampled_from([None, NAN, OTHER_NAN, 0.0, -0.0, 1.0]), max_size=12)),
    st.tuples(st.just(pa.float32()), st.lists(st.sampled_from([None, NAN, 0.0, -0.0, 1.0]), max_size=12)),
    st.tuples(st.just(pa.string()), st.lists(st.sampled_from([None, "", "a", "ä"]), max_size=12)),
    st.tuples(st.just(pa.int32()), st.lists(st.sampled_from([None, 0, 1, -1]), max_size=12)),
    st.tuples(st.just(pa.bool_()), st.lists(st.sampled_from([None, True, False]), max_size=12)),
    st.tuples(
        st.just(pa.decimal128(5, 1)), st.lists(st.sampled_from([None, Decimal("0.0"), Decimal("1.0")]), max_size=12)
    ),
)


@settings(max_examples=150, deadline=None)
@given(column=columns, offset=st.integers(0, 3))
def test_equality_is_that_of_canonical_values(column: tuple[pa.DataType, list[Any]], offset: int) -> None:
    """Also on arrays that are slices of others, as those read from blocks are."""
    kind, values = column
    array = canonical(pa.chunked_array([pa.array(values[:2], kind), pa.array(values[2:], kind)])).slice(offset)
    values = values[offset:]
    for shift in range(len(values)):
        left, right = array[shift:], array[: len(values) - shift]
        expected = [canon(a) == canon(b) for a, b in zip(values[shift:], values, strict=False)]
        assert same([left], [right]).tolist() == expected


def test_all_columns_of_a_key_count() -> None:
    first, second = pa.array([1, 1, 2]), pa.array(["a", "b", "a"])
    assert same([first, second], [first.take([0, 0, 0]), second.take([0, 0, 0])]).tolist() == [True, False, False]


def test_canonical_floats_have_one_representation() -> None:
    bits = [struct.pack("<d", v) for v in canonical(pa.array([-0.0, 0.0, NAN, OTHER_NAN, -NAN])).to_pylist()]
    assert len(set(bits[:2])) == len(set(bits[2:])) == 1
    assert canonical(pa.array([None, 1.5, -math.inf])).to_pylist() == [None, 1.5, -math.inf]


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.decimal128(9, 2),
    ],
)
def test_types_that_can_be_keys(kind: pa.DataType) -> None:
    check_key_type("k", kind)
    same([canonical(pa.nulls(2, kind))], [canonical(pa.nulls(2, kind))])


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.string()), pa.null()]
)
def test_types_that_cannot_be_keys_are_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedKey, match=r"column 'user' has type .* can't be a key"):
        check_key_type("user", kind)


@settings(max_examples=60, deadline=None)
@given(hashes=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), bits=st.integers(0, 15))
def test_a_slice_is_the_hash_modulo_the_number_of_slices(hashes: list[int], bits: int) -> None:
    slices = 1 << bits
    where = positions(np.array(hashes, np.int64), slices)
    assert slice_of(where, slices).tolist() == [h % slices for h in hashes]
    assert len(set(where.tolist())) == len(set(hashes)), "a position is the whole hash, so nothing more collides"


@settings(max_examples=60, deadline=None)
@given(hashes=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), bits=st.integers(0, 6))
def test_each_slice_is_one_range_of_sorted_positions(hashes: list[int], bits: int) -> None:
    slices = 1 << bits
    where = np.sort(positions(np.array(hashes, np.int64), slices))
    starts = slice_starts(where, slices)
    assert len(starts) == slices + 1
    owners = slice_of(where, slices)
    for number in range(slices):
        assert (owners[starts[number] : starts[number + 1]] == number).all()
    assert starts[0] == 0
    assert starts[-1] == len(where)


@pytest.mark.parametrize("slices", [0, -1, 3, 127, MAX_SLICES * 2])
def test_a_number_of_slices_that_is_no_power_of_two_is_refused(slices: int) -> None:
    with pytest.raises(ValueError, match=f"power of two .* not {slices}"):
        slice_bits(slices)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, "", "a", "b", "c"])), max_size=30),
    runs=st.integers(1, 3),
)
def test_grouping_brings_equal_keys_together_and_keeps_their_order(
    rows: list[tuple[int, str | None]], runs: int
) -> None:
    """Positions collide at will; `presorted` rows are a few sorted runs, as a merge gets them."""
    size = -(-len(rows) // runs) or 1
    rows = [r for i in range(0, len(rows), size) for r in sorted(rows[i : i + size], key=lambda r: r[0])]
    where, keys = np.array([p for p, _ in rows], np.uint64), pa.array([k for _, k in rows], pa.string())
    for presorted in (True, False):
        found = group(where, [keys], presorted=presorted)
        groups = np.split(found.order, found.starts[1:]) if len(found) else []
        expected: dict[tuple[int, str | None], list[int]] = {}
        for i, row in enumerate(rows):
            expected.setdefault(row, []).append(i)
        assert sorted(sorted(g.tolist()) for g in groups) == sorted(expected.values())
        assert (np.diff(where[found.order].astype(np.int64)) >= 0).all(), "by ascending position"
        assert found.sizes.tolist() == [len(g) for g in groups]
        assert found.group_of_row.tolist() == [i for i, g in enumerate(groups) for _ in g]
        if presorted:
            assert all((np.diff(g) > 0).all() for g in groups), "rows of a key keep the order in which they came"
            assert found.firsts.tolist() == [g[0] for g in groups]
            assert found.lasts.tolist() == [g[-1] for g in groups]


def test_timestamps_beyond_what_python_can_show_are_keys_all_the_same() -> None:
    """Year 200000 fits 64 bits of microseconds, though not a datetime; keys that collide are compared too."""
    far = pa.array([10**18 * 6, 10**18 * 6 + 1, 10**18 * 6, 0], pa.int64()).view(pa.timestamp("us", "UTC"))
    assert group(np.zeros(4, np.uint64), [far]).sizes.tolist() in ([2, 1, 1], [1, 2, 1], [1, 1, 2])


def test_a_layout_is_described_the_same_every_time() -> None:
    layout = Layout(pa.schema([("k", pa.timestamp("us", "UTC"))]), pa.schema([("n.0", pa.int64())]), expires=True)
    assert layout.describe() == {
        "key": [["k", "timestamp[us, tz=UTC]"]],
        "state": [["n.0", "int64"]],
        "expires": True,
        "drops": False,
    }
    assert layout.schema.names == ["$position", "$expires_us", "$dead", "k.k", "s.n.0"]

"""Names of blocks, references to them, and their bytes: whatever goes in comes out."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import codec
from springtide.blocks.block import (
    OUTPUT,
    RUN,
    BlockRef,
    block_name,
    decode,
    encode,
    epoch_of,
)
from springtide.blocks.slice_set import SliceSet
from springtide.ids import Epoch, InstanceId

TABLE = pa.table({"k": ["a", None, "日本"], "n": pa.array([1, 2, 3], pa.int64()), "l": [[1], [], None]})


def test_the_name_tells_the_epoch_and_nothing_else_passes_for_a_block() -> None:
    for epoch in (0, 7, 999_999_999, 10**9):
        for kind in (RUN, OUTPUT):
            assert epoch_of(block_name("word-counts_2", Epoch(epoch), InstanceId(12), kind)) == epoch
    good = block_name("a", Epoch(1), InstanceId(0), RUN)
    for bad in (
        "",
        "app.json",
        good + "x",
        good + "\n",
        "x/" + good,
        good.replace("run", "pickle"),
        "." + good,
        good[:-6],
    ):
        assert epoch_of(bad) is None


@given(
    rows=st.integers(0, 9),
    slices=st.sampled_from(["", "0-3", "1,5"]),
    partial=st.booleans(),
    expires=st.one_of(st.none(), st.tuples(st.integers(-9, 9), st.integers(-9, 9))),
)
def test_a_reference_survives_as_json(rows: int, slices: str, partial: bool, expires: tuple[int, int] | None) -> None:
    ref = BlockRef("n", "counts", Epoch(3), rows, 10, 123, SliceSet.parse(slices), expires, partial)
    assert codec.loads(BlockRef, codec.dumps(ref)) == ref


@settings(max_examples=60)
@given(st.frozensets(st.integers(0, 8), min_size=1), st.lists(st.frozensets(st.integers(0, 8)), max_size=4))
def test_a_block_that_loses_slices_knows_that_it_holds_more_than_it_counts_for(
    first: frozenset[int], taken: list[frozenset[int]]
) -> None:
    """Rows of a slice that was taken away must not be read when the slice comes back."""
    ref: BlockRef | None = BlockRef("n", "counts", Epoch(0), 1, 1, 0, SliceSet.of(first))
    left = first
    for slices in taken:
        if ref is None:
            break
        ref, left = ref.without(slices), left - slices  # type: ignore[arg-type]
        if ref is not None:
            assert ref.slices == left
            assert ref.partial == (left != first)
    assert (ref is None) == (not left)


@pytest.mark.parametrize("table", [TABLE, TABLE.slice(1, 1), TABLE.slice(0, 0), pa.concat_tables([TABLE, TABLE])])
def test_any_table_survives_as_bytes(table: pa.Table) -> None:
    assert decode(encode(table)) == table

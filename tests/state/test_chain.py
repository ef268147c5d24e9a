"""The shape of a chain: few runs, and little rewriting. Rows are counted, not seconds."""

import math
import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import Farm, Row

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.chain import RATIO, Chain
from springtide.state.layout import Layout
from springtide.state.per_key import PerKey
from springtide.state.reduce import ReduceLogic
from springtide.state.run import Run

KEY = pa.schema([("k", pa.int64())])
TOTAL_STATE = pa.schema([("n", pa.int64())])


def counting() -> Farm:
    return Farm(AggregateLogic(KEY, KEY, {"n": agg.count()}, 1), KEY, slices=1)


def ends(key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, list[Row]]:
    """Every second visit forgets the key."""
    return ({"n": 1} if state is None else None), []


def forgetting() -> Farm:
    output = pa.schema([("k", pa.int64())])
    return Farm(ReduceLogic(KEY, KEY, PerKey(ends, TOTAL_STATE, output), TOTAL_STATE, output), KEY, slices=1)


def sizes(farm: Farm) -> list[int]:
    return [ref.rows for ref in farm.runs]


def assert_geometric(farm: Farm) -> None:
    """Each run is more than RATIO times as large as the next, so there are at most log2(rows) + 1."""
    held = sizes(farm)
    assert all(older > RATIO * newer for older, newer in pairwise(held)), held
    assert len(held) <= math.log2(max(sum(held), 1)) + 1


@settings(max_examples=60, deadline=None)
@given(
    epochs=st.lists(st.one_of(st.integers(1, 5), st.integers(1, 200)), max_size=25),
    new=st.floats(0, 1),
    seed=st.integers(0, 100),
)
def test_a_chain_is_never_long(epochs: list[int], new: float, seed: int) -> None:
    chance = random.Random(seed)
    for farm in (counting(), forgetting()):
        top = 0
        for changed in epochs:
            keys = {chance.randrange(top) if top and chance.random() > new else top + i for i in range(changed)}
            top += changed
            farm.epoch([{"k": k} for k in keys])
            assert_geometric(farm)


def inserts(chance: random.Random) -> Iterator[list[int]]:
    for epoch in range(300):
        yield list(range(epoch * 20, epoch * 20 + 20))


def uniform(chance: random.Random) -> Iterator[list[int]]:
    yield list(range(6000))
    for _ in range(300):
        yield chance.sample(range(6000), 20)


def hot(chance: random.Random) -> Iterator[list[int]]:
    yield list(range(6000))
    for _ in range(300):
        yield list({int(chance.paretovariate(0.6)) % 6000 for _ in range(25)})


def bursts(chance: random.Random) -> Iterator[list[int]]:
    yield list(range(3000))
    for epoch in range(150):
        yield chance.sample(range(6000), 200 if epoch % 10 == 0 else 3)


WORKLOADS: dict[str, Callable[[random.Random], Iterator[list[int]]]] = {
    "inserts": inserts,
    "uniform": uniform,
    "hot": hot,
    "bursts": bursts,
}


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_an_epoch_rewrites_on_average_little_more_than_it_changes(workload: str) -> None:
    """O(n log N) rows for n changed keys among N, and far from the N of rewriting everything."""
    farm = counting()
    changed = rewritten = epochs = 0
    for keys in WORKLOADS[workload](random.Random(1)):
        changed += len(keys)
        rewritten += farm.epoch([{"k": k} for k in keys]).rewritten
        epochs += 1
        assert_geometric(farm)
    assert rewritten >= changed
    assert rewritten <= changed * math.log2(farm.keys), (rewritten / changed, math.log2(farm.keys))
    assert rewritten < farm.keys * epochs / 10


def test_an_epoch_that_changes_one_key_of_many_writes_one_row() -> None:
    farm = counting()
    farm.epoch([{"k": k} for k in range(1000)])
    assert farm.epoch([{"k": 5}]).rewritten == 1


def test_tombstones_do_not_pile_up() -> None:
    """Keys that come and go for ever leave a store whose size is that of the keys that stay."""
    farm = forgetting()
    for epoch in range(200):
        farm.epoch([{"k": k} for k in range(epoch * 10, epoch * 10 + 10)])
        farm.epoch([{"k": k} for k in range(epoch * 10, epoch * 10 + 10)])
    assert farm.keys == 0
    assert sum(sizes(farm)) < 200


EXPIRING = Layout(KEY, pa.schema([]), expires=True)


def expiring(*rows: tuple[int, int, bool]) -> Run:
    """A run of (key, expiry, dead) rows; a key is its own position."""
    keys, expires, dead = zip(*sorted(rows), strict=True)
    columns = [pa.array(keys, pa.uint64()), pa.array(expires, pa.int64()), pa.array(dead), pa.array(keys, pa.int64())]
    return Run(pa.table(columns, schema=EXPIRING.schema), EXPIRING, 1)


def test_a_key_expires_by_its_newest_row() -> None:
    """Not by an older one that would be due, and not if it is gone already."""
    chain = Chain(
        [
            expiring((1, 5, False), (2, 5, False), (3, 5, False), (4, 50, False)),
            expiring((2, 50, False), (3, 5, True), (4, 6, False)),
        ],
        EXPIRING,
    )
    due = chain.expired(0, 10)
    assert due.column("k.k").to_pylist() == [1, 4]
    assert due.column("$expires_us").to_pylist() == [5, 6]
    assert chain.expired(5, 10).column("k.k").to_pylist() == [4], "after is not in the span, until is"
    assert chain.expired(0, 5).column("k.k").to_pylist() == [1]
    assert chain.expired(6, 49).num_rows == 0


def test_a_run_that_no_longer_counts_for_a_slice_lets_nothing_of_it_expire() -> None:
    whole = expiring((1, 5, False), (2**62 + 1, 5, False))
    run = Run(whole.rows, EXPIRING, 4, live=np.array([True, False, True, True]))
    assert Chain([run], EXPIRING).expired(0, 10).column("k.k").to_pylist() == [1]

"""Hot keys: those that stand out in a sample."""

import numpy as np
import pyarrow as pa

from springtide import codec
from springtide.engine.wire.commit_record import MapStats
from springtide.engine.worker.hot_keys import hot_keys
from springtide.metrics.report import HotKey


def positions(keys: np.ndarray) -> np.ndarray:
    return keys.astype(np.uint64) << np.uint64(60)


def test_a_key_with_a_good_share_of_the_rows_is_found() -> None:
    rng = np.random.default_rng(1)
    keys = np.where(rng.random(100_000) < 0.3, 7, rng.integers(8, 16, 100_000))
    keys = np.where(rng.random(100_000) < 0.5, rng.integers(100, 1_000_000, 100_000), keys)
    (hot, *others) = hot_keys(keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15), [pa.array(keys)], 16)
    assert hot.key == "[7]"
    assert 10_000 < hot.rows < 20_000
    assert all(other.rows < hot.rows for other in others)


def test_even_keys_do_not_stand_out() -> None:
    keys = np.arange(50_000) % 1000
    assert hot_keys(keys.astype(np.uint64), [pa.array(keys)], 16) == ()


def test_few_rows_tell_nothing() -> None:
    keys = np.zeros(10, np.int64)
    assert hot_keys(positions(keys), [pa.array(keys)], 16) == ()
    assert hot_keys(positions(keys[:0]), [pa.array(keys[:0])], 16) == ()


def test_what_several_tasks_found_is_added_up() -> None:
    one = MapStats(hot_keys=(HotKey('["a"]', 1, 10), HotKey('["b"]', 2, 8)))
    two = MapStats(hot_keys=(HotKey('["b"]', 2, 7),))
    both = one + two
    assert both.hot_keys == (HotKey('["b"]', 2, 15), HotKey('["a"]', 1, 10))
    assert codec.loads(MapStats, codec.dumps(both)) == both

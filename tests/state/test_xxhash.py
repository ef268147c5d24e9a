import numpy as np
import pyarrow as pa

from springtide.state.xxhash import hash_integers

EXPECTED = [-5252525462095825812, -7001672635703045582, 3858142552250413010, 755925937788029102, 42]


def test_the_hashes_are_sparks() -> None:
    # SELECT xxhash64(0L), xxhash64(1L), xxhash64(-1L), xxhash64(123456789012345L), xxhash64(CAST(NULL AS BIGINT))
    given = pa.array([0, 1, -1, 123456789012345, None], pa.int64())
    assert hash_integers(given).tolist() == EXPECTED


def test_the_column_is_left_as_it_was() -> None:
    column = pa.array(np.arange(1000))
    hash_integers(column)
    assert column.to_pylist() == list(range(1000))

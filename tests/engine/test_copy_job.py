"""Jobs of copies: everything is carried once, and no job is larger than it must be."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.blocks.block import BlockRef
from springtide.blocks.slice_set import SliceSet
from springtide.engine.pool.copy_job import JOB_BYTES, loads
from springtide.engine.worker.copy import Errand
from springtide.ids import Epoch, SliceId, WorkerId
from springtide.state.layout import Layout

LAYOUT = Layout(pa.schema([("k", pa.int64())]), pa.schema([("n", pa.int64())]))
SLICES = frozenset(map(SliceId, range(4)))


def errand(number: int, size: int, source: str, target: str) -> Errand:
    run = BlockRef(f"run-{number}", "count", Epoch(1), 1, size, 0, SliceSet.of(SLICES))
    return Errand(run, SLICES, WorkerId(source), WorkerId(target), LAYOUT)


workers = st.sampled_from(["0", "1", "2"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2 * JOB_BYTES), workers, workers), max_size=12))
def test_every_errand_is_in_one_job_and_only_a_single_one_may_be_too_large(
    some: list[tuple[int, str, str]],
) -> None:
    errands = [errand(number, *one) for number, one in enumerate(some)]
    jobs = loads(errands)
    assert sorted(e.run.name for job in jobs for e in job) == sorted(e.run.name for e in errands)
    assert all(jobs)
    for job in jobs:
        assert len(job) == 1 or sum(e.run.size_bytes for e in job) <= JOB_BYTES

"""Workers: values that can be written as JSON."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import codec
from springtide.ids import WorkerId
from springtide.plan.worker import BadWorker, Worker


def test_a_worker_has_defaults_for_one_machine() -> None:
    assert Worker(WorkerId("0")) == Worker(WorkerId("0"), host="localhost", slots=1, zone="")


@settings(max_examples=30)
@given(
    st.builds(Worker, id=st.text(min_size=1).map(WorkerId), host=st.text(), slots=st.integers(1, 64), zone=st.text())
)
def test_a_worker_reads_back_what_it_wrote(worker: Worker) -> None:
    assert codec.loads(Worker, codec.dumps(worker)) == worker


def test_what_json_leaves_out_has_its_default() -> None:
    assert codec.convert(Worker, {"id": "7", "zone": "east"}) == Worker(WorkerId("7"), zone="east")


@pytest.mark.parametrize(("plain", "says"), [({"id": ""}, "empty id"), ({"id": "7", "slots": 0}, "'7' has 0 slots")])
def test_a_worker_that_cannot_be_is_refused(plain: dict[str, object], says: str) -> None:
    with pytest.raises(BadWorker, match=says):
        Worker(**plain)

"""Workers come and go for weeks: the last of those that have gone are remembered, and no more."""

from springtide.engine.executors.known_workers import REMEMBERED, KnownWorkers
from springtide.ids import WorkerId
from springtide.plan.worker import Worker


def test_only_the_last_to_go_are_remembered() -> None:
    known = KnownWorkers(["east", "west"])
    for number in range(100):
        alive = {WorkerId(str(number)), WorkerId(str(number + 1))}
        assert known.unknown(alive)
        for worker in sorted(alive):
            known.learn(worker, "host", 3)
        known.forget(alive)
        assert [w.id for w in known.among(alive)] == [str(number), str(number + 1)]
        assert len(known._known) <= REMEMBERED + len(alive)
    assert known.departed(alive) == tuple(str(number) for number in range(99 - REMEMBERED, 99))
    assert known.get(WorkerId("0")) is None
    assert known.get(WorkerId("100")) == Worker(WorkerId("100"), "host", 2, "east"), "zones go on in turn"


def test_the_driver_is_no_worker_and_nobody_is_learnt_twice() -> None:
    known = KnownWorkers()
    known.learn("driver", "host", 4)
    known.learn("1", "here", 1)
    known.learn("1", "elsewhere", 9)
    assert known.among({WorkerId("driver"), WorkerId("1")}) == [Worker(WorkerId("1"), "here", 1, "")]

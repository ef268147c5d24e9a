"""Workers come and go for weeks: the last of those that have gone are remembered, and no more."""

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

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


def test_threads_that_learn_at_once_lose_nobody() -> None:
    known = KnownWorkers(["east", "west"])
    everybody = [WorkerId(str(number)) for number in range(400)]
    together = threading.Barrier(8)

    def look(workers: list[WorkerId]) -> None:
        together.wait(timeout=30)
        for worker in workers:
            known.learn(worker, "host", 2)
            known.warmed([worker])
            known.forget(set(everybody))

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for done in [threads.submit(look, everybody[first::8]) for first in range(8)]:
                done.result(timeout=60)
    finally:
        sys.setswitchinterval(interval_s)
    assert known.warm(everybody) == frozenset(everybody)
    assert Counter(worker.zone for worker in known.among(set(everybody))) == {"east": 200, "west": 200}


def test_who_is_forgotten_is_not_warm_any_more() -> None:
    known = KnownWorkers()
    gone = [WorkerId(str(number)) for number in range(REMEMBERED + 1)]
    for worker in gone:
        known.learn(worker, "host", 2)
    known.warmed(gone)
    known.forget(set())
    assert known.warm(gone) == frozenset(gone[1:]), "the first to go is forgotten"

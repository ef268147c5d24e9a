"""An app that sheds a topic's records is hurt in the midst of it: all is as if nothing had happened.

Accounts and results are exactly those of the records that every epoch was to keep.
"""

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import shedding_app
from driver_life import Life, reports
from kept_accounts import check_told, kept
from overload_app import AT_WORK, KEYS
from shedding_oracle import MINIMA, check, ends

from springtide import rates
from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.metrics.report import EpochReport
from springtide.testing.injector import Injector
from springtide.testing.kafka import Broker
from springtide.testing.topics import create, produce

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]
TOPIC, PARTITIONS = "rides", (0, 1)
RATE, ROW_S = 450.0, 0.0025
"""More rows a second than the app could work on if it did nothing but take its time over them: it has to shed."""
FIRST = 200
"""Rows that are there when the app starts."""
MALFORMED_EACH = 51
EVERY = 6
"""Epochs from one durable checkpoint to the next, where epochs are to be repeated."""
DURABLE = f"--durable-every={EVERY}"
DRAINING_S = 600.0
SOME = 3
"""Epochs that shed, one after the other, before something is killed."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def value(number: int, first: int = 0) -> bytes:
    """A record; some are malformed."""
    number += first
    if number % MALFORMED_EACH == 0:
        return b"no record"
    return json.dumps({"key": number * number % KEYS, "id": number}).encode()


def test_a_driver_killed_while_it_sheds(broker: Broker, tmp_path: Path) -> None:
    """Epochs that shed were true and are repeated by the next driver, as their state was not durable yet."""
    topic = create(broker.servers, f"{TOPIC}-drivers", len(PARTITIONS))
    with life(tmp_path, broker, topic, DURABLE) as first, begun(first, broker, topic) as load:
        first.until("shed epochs that are not durable", lambda: sheds(tmp_path) and not_durable(tmp_path))
        wait_for_work(first)
        first.kill()
        last = reports(tmp_path, 1)[-1].epoch
        with life(tmp_path, broker, topic, DURABLE) as second:
            second.until("shedding again", lambda: sheds(tmp_path, after=last + 1))
            finish(second, load, topic)
    repeated = [r for r in reports(tmp_path) if r.replayed and not r.published_again]
    assert sum(shed(report) for report in repeated) >= SOME
    assert len({manifest.driver for manifest in kept(tmp_path).values()}) == 2, "a later driver went on"
    check_told(tmp_path)
    check(tmp_path, broker.servers, topic)


def test_an_executor_killed_while_it_sheds(broker: Broker, tmp_path: Path) -> None:
    """The epoch in flight is planned anew, and read by others; it sheds the very same records."""
    topic = create(broker.servers, f"{TOPIC}-executors", len(PARTITIONS))
    with life(tmp_path, broker, topic, "--workers=2") as only, begun(only, broker, topic) as load:
        only.until("shedding", lambda: sheds(tmp_path))
        last = reports(tmp_path, 1)[-1].epoch
        wait_for_work(only)
        victim = min(only.driver.executors().items())[1]
        victim.signal(signal.SIGKILL)
        only.until("shedding again", lambda: sheds(tmp_path, after=last + 1))
        finish(only, load, topic)
    anew = [report for report in reports(tmp_path) if report.retries and report.epoch > last]
    assert any(shed(report) for report in anew), "an epoch that sheds was planned anew"
    check_told(tmp_path)
    check(tmp_path, broker.servers, topic)


def life(root: Path, broker: Broker, topic: str, *more: str) -> Life:
    given = [f"--servers={broker.servers}", f"--topic={topic}", f"--row-s={ROW_S}"]
    return Life(root, shedding_app, [*given, *more])


def begun(one: Life, broker: Broker, topic: str) -> Injector:
    """The load, once the app has had its first epoch."""
    produce(broker.servers, topic, map(value, range(FIRST)))
    one.until("a first epoch", lambda: one.last() is not None)
    later = partial(value, first=FIRST)
    return Injector(broker.servers, topic, rates.constant(RATE), later, partitions=PARTITIONS)


def sheds(root: Path, after: int = -1) -> bool:
    """Whether all queries shed in the last epochs, all of them later than one."""
    recent = reports(root, SOME)
    return len(recent) == SOME and all(shed(report) and report.epoch > after for report in recent)


def shed(report: EpochReport) -> bool:
    return len(report.queries) == len(MINIMA) and all(query.shed > 0 for query in report.queries)


def not_durable(root: Path) -> bool:
    """Whether some epochs would have to be repeated, and no durable checkpoint is on its way or due after one more."""
    base = DurableLog(current(LocalStore(root / "checkpoint"))).last()
    return SOME <= reports(root, 1)[-1].epoch - (-1 if base is None else base.epoch) < EVERY - 1


def wait_for_work(one: Life) -> None:
    """Wait until a step has begun with its rows."""
    mark = one.root / AT_WORK
    mark.unlink(missing_ok=True)
    one.until("a step at work", mark.exists)


def finish(one: Life, load: Injector, topic: str) -> None:
    """Let nothing more come, and the app take all that there is."""
    sent = FIRST + load.stop()
    one.until("all to be taken", lambda: taken(one.root, topic) == sent, DRAINING_S)
    one.stop()


def taken(root: Path, topic: str) -> int:
    """The records of the topic that committed epochs have taken."""
    manifests = kept(root)
    return sum(ends(manifests[max(manifests)], topic).values())

"""The report log: what drivers append one after the other."""

from dataclasses import replace
from pathlib import Path

import pytest

from springtide.blocks.store import LocalStore
from springtide.engine.lifecycle.report_log import CHUNK, DIRECTORY, ReportLog, last_reports, last_told
from springtide.metrics.report import EpochReport, Phases

REPORT = EpochReport("app", 0, 1.0, 1, False, 10, 5, None, None, 0, Phases())


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def tell(store: LocalStore, *epochs: int) -> None:
    """A driver that reports these epochs."""
    log = ReportLog(store)
    for epoch in epochs:
        log.append(replace(REPORT, epoch=epoch))


def test_the_last_epoch_that_was_told_of(store: LocalStore) -> None:
    assert last_told(store) == -1
    tell(store, *range(CHUNK + 5))
    assert last_told(store) == CHUNK + 4


def test_drivers_that_went_back_do_not_hide_what_was_told_before(store: LocalStore) -> None:
    tell(store, *range(10))
    tell(store, 4, 5, 6, 7, 8)
    tell(store, 4)
    assert last_told(store) == 9
    assert [r.epoch for r in last_reports(store, 6)] == [4, 5, 6, 7, 8, 4], "what a driver told stays"


def test_a_line_that_was_cut_short_does_not_hold_up_an_app(store: LocalStore) -> None:
    tell(store, 0, 1, 2)
    path = f"{DIRECTORY}/{store.list(DIRECTORY)[0]}"
    store.put(path, store.get(path)[:-20])
    assert last_told(store) == 1


def test_a_driver_that_was_taken_over_does_not_touch_what_its_successor_tells(store: LocalStore) -> None:
    first, second = ReportLog(store, generation=1), ReportLog(store, generation=2)
    first.append(replace(REPORT, epoch=3))
    second.append(replace(REPORT, epoch=3))
    second.append(replace(REPORT, epoch=4))
    first.append(replace(REPORT, epoch=4))
    assert [r.epoch for r in last_reports(store, 3)] == [4, 3, 4]
    assert len(store.list(DIRECTORY)) == 2

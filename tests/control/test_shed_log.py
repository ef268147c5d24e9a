"""The log of what was shed."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from springtide.blocks.store import LocalStore
from springtide.control.shed.log import CHUNK, ShedDecision, ShedLog, read_shed_log


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def test_what_is_decided_again_is_not_written_again(store: LocalStore) -> None:
    log = ShedLog(store)
    for at in (1.0, 2.0, 3.0):
        log.note(ShedDecision(at, {"q": 0.5}, {"rows": 100 + int(at)}, ("the workers are full",)))
    log.note(ShedDecision(4.0, {"q": 0.7}, {"rows": 104}, ()))
    assert read_shed_log(store) == [], "nobody has waited for the store yet"
    log.write()
    found = [(entry.number, entry.at, entry.accuracy["q"]) for entry in read_shed_log(store)]
    assert found == [(1, 1.0, 0.5), (2, 4.0, 0.7)]
    assert log.last is not None
    assert (log.last.number, log.last.at) == (2, 4.0)


def test_a_remark_is_written_even_if_nothing_changes(store: LocalStore) -> None:
    log = ShedLog(store)
    log.note(ShedDecision(1.0, {"q": 0.5}, {"rows": 100}, ()))
    log.note(ShedDecision(2.0, {"q": 0.5}, {}, ("the controller could not decide",)))
    log.write()
    assert [tuple(entry.reasons) for entry in read_shed_log(store)] == [(), ("the controller could not decide",)]


def test_the_same_remark_is_written_once(store: LocalStore) -> None:
    log = ShedLog(store)
    for at in (1.0, 2.0):
        log.note(ShedDecision(at, {"q": 0.5}, {}, ("the controller could not decide",)))
    log.write()
    assert [entry.at for entry in read_shed_log(store)] == [1.0]


def test_what_is_missing_is_written_when_it_changes(store: LocalStore) -> None:
    """When it begins, when it is over, and when it is another number; not for noise."""
    log = ShedLog(store)
    for at, missing in enumerate((0.0, 500.0, 510.0, 490.0, 560.0, 0.0, 0.0)):
        log.note(ShedDecision(at, {"q": 0.5}, {"rows": 9}, ("too much",), comes=1000.0, missing=missing))
    log.write()
    assert [entry.missing for entry in read_shed_log(store)] == [0.0, 500.0, 560.0, 0.0]


def test_a_later_driver_goes_on_with_the_numbers_over_many_files(store: LocalStore) -> None:
    total = 2 * CHUNK + 10
    for part in (range(CHUNK + 5), range(CHUNK + 5, total)):
        log = ShedLog(store)
        for n in part:
            log.note(ShedDecision(float(n), {"q": n / total}, {"rows": n}, (f"reason {n}",)))
        log.write()
    found = read_shed_log(store)
    assert [entry.number for entry in found] == list(range(1, total + 1))
    assert [dict(entry.admitted)["rows"] for entry in found] == list(range(total))
    assert len(list(store.list("shedding"))) == 3


def test_nothing_was_noted_yet(store: LocalStore) -> None:
    assert (ShedLog(store).last, read_shed_log(store)) == (None, [])


def test_what_could_not_be_written_is_written_with_what_comes_next(store: LocalStore) -> None:
    log = ShedLog(store)
    log.note(ShedDecision(1.0, {"q": 0.5}, {"rows": 100}, ()))
    put, store.put = store.put, Mock(side_effect=OSError("the store is away"))  # type: ignore[method-assign]
    with pytest.raises(OSError, match="away"):
        log.write()
    store.put = put  # type: ignore[method-assign]
    log.note(ShedDecision(2.0, {"q": 0.7}, {"rows": 100}, ()))
    log.write()
    log.write()
    assert [(entry.number, entry.at) for entry in read_shed_log(store)] == [(1, 1.0), (2, 2.0)]

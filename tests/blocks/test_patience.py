"""A store that is away is waited for; one that is full is not."""

import errno
from pathlib import Path

import pytest

from springtide.blocks.errors import AlreadyThere, StoreFailed
from springtide.blocks.patience import LONGEST_PAUSE_S, PatientStore
from springtide.blocks.store import LocalStore
from springtide.blocks.store_errors import failed
from springtide.testing import ManualClock


class Away(LocalStore):
    """A store whose calls fail until a time."""

    def __init__(self, root: Path, clock: ManualClock, until_s: float, number: int = errno.EIO) -> None:
        super().__init__(root)
        self.clock, self.until_s, self.number = clock, until_s, number

    def _check(self) -> None:
        if self.clock() < self.until_s:
            raise OSError(self.number, "away")

    def put(self, name: str, data: bytes) -> None:
        try:
            self._check()
        except OSError as error:
            raise failed("write", name, error) from error
        super().put(name, data)

    def get(self, name: str) -> bytes:
        self._check()
        return super().get(name)


def patient(store: LocalStore, clock: ManualClock, patience_s: float = 60.0) -> PatientStore:
    return PatientStore(store, patience_s, now=clock, wait=clock.advance)


def test_a_store_that_comes_back_is_waited_for(tmp_path: Path) -> None:
    clock = ManualClock()
    store = patient(Away(tmp_path, clock, 30.0), clock)
    store.put("a", b"x")
    assert 30.0 <= clock() <= 30.0 + LONGEST_PAUSE_S
    assert store.get("a") == b"x"
    assert store.list("") == ["a"]


def test_patience_ends(tmp_path: Path) -> None:
    clock = ManualClock()
    store = patient(Away(tmp_path, clock, 1000.0), clock)
    with pytest.raises(StoreFailed, match="could not write 'a'"):
        store.put("a", b"x")
    assert 60.0 <= clock() <= 60.0 + LONGEST_PAUSE_S
    with pytest.raises(OSError, match="away"):
        store.get("a")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_what_waiting_does_not_mend_is_told_at_once(tmp_path: Path, number: int) -> None:
    clock = ManualClock()
    with pytest.raises(StoreFailed):
        patient(Away(tmp_path, clock, 30.0, number), clock).put("a", b"x")
    assert clock() == 0.0


def test_answers_are_not_failures(tmp_path: Path) -> None:
    clock = ManualClock()
    store = patient(LocalStore(tmp_path), clock)
    store.put_if_absent("a", b"x")
    with pytest.raises(AlreadyThere):
        store.put_if_absent("a", b"y")
    with pytest.raises(FileNotFoundError):
        store.get("b")
    store.delete(iter(["a"]))
    store.tidy("")
    assert store.list("") == []
    assert clock() == 0.0

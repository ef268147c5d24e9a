"""Whatever a driver raises is the store's error, and says whether waiting may mend it."""

import errno
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blocks_kit import BEFORE, S3Like, next_manifest, s3_store

from springtide.blocks.claim import Claim, Holder
from springtide.blocks.durable import DurableLog, Replay
from springtide.blocks.errors import AlreadyThere, StoreFailed
from springtide.blocks.log import ManifestLog
from springtide.blocks.patience import PatientStore, patient_store
from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore, Store
from springtide.blocks.store_errors import failed, may_mend
from springtide.control.adapt.ledger import Ledger
from springtide.control.shed.log import ShedDecision, ShedLog
from springtide.engine.lifecycle.report_log import ReportLog
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport, Phases
from springtide.plan.shedding import Shedding
from springtide.policies.decision import Hold
from springtide.policies.past import Entry
from springtide.testing import ManualClock


class EndpointConnectionError(Exception):
    """As botocore's: no OSError."""


class NoCredentialsError(Exception):
    """As botocore's."""


class ClientError(Exception):
    """As botocore's: the answer is in a dictionary."""

    def __init__(self, status: int) -> None:
        super().__init__(f"An error occurred ({status})")
        self.response = {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HttpError(Exception):
    """As gcsfs', which has a code; adlfs' has a status_code, aiohttp's a status."""

    def __init__(self, name: str, status: Any) -> None:
        super().__init__(f"{status}")
        setattr(self, name, status)


def as_s3fs(error: Exception, status: int) -> Exception:
    """An error that s3fs makes of an answer: what the server said is what it was made of."""
    error.__cause__ = ClientError(status)
    return error


MENDS: list[Exception] = [
    EndpointConnectionError("Could not connect"),
    TimeoutError(),
    ConnectionResetError(errno.ECONNRESET, "reset"),
    OSError(errno.EIO, "input/output error"),
    ClientError(500),
    ClientError(503),
    ClientError(429),
    HttpError("code", 503),
    HttpError("status_code", 408),
    HttpError("status", 502),
    HttpError("code", None),
    HttpError("code", "SlowDown"),
    as_s3fs(TimeoutError("slow"), 400),
    as_s3fs(OSError(errno.EBUSY, "slow down"), 503),
    as_s3fs(OSError(errno.EIO, "ConditionalRequestConflict"), 409),
]
STAYS: list[Exception] = [
    PermissionError("Access Denied"),
    OSError(errno.ENOSPC, "full"),
    OSError(errno.EROFS, "read-only"),
    NoCredentialsError("Unable to locate credentials"),
    ClientError(403),
    ClientError(400),
    HttpError("code", 403),
    HttpError("status_code", 401),
    HttpError("status", 404),
    ClientError(301),
    ClientError(501),
    as_s3fs(OSError(errno.EINVAL, "malformed"), 400),
    as_s3fs(OSError(errno.EREMCHG, "another region"), 301),
]
CALLS: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put("a", b""),
    "put_if_absent": lambda store: store.put_if_absent("a", b""),
    "copy": lambda store: store.copy("b", "a"),
    "get": lambda store: store.get("b"),
    "list": lambda store: store.list(""),
    "delete": lambda store: store.delete(["b"]),
    "remove": lambda store: store.remove("d"),
}


class Away(S3Like):
    """A bucket that fails as told in every call, until a time."""

    def __init__(self, clock: ManualClock, error: Exception, until_s: float = 60.0) -> None:
        super().__init__()
        self.error = lambda: error
        self.fail = lambda call, path: BEFORE if clock() < until_s else None

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        self._call("remove", path, lambda: super(S3Like, self).rm(path, recursive=recursive, maxdepth=maxdepth))


def text(error: Exception) -> str:
    return f"{type(error).__name__} {error}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [*MENDS, *STAYS], ids=text)
def test_every_call_tells_of_the_store_in_one_language(call: str, error: Exception) -> None:
    with pytest.raises(StoreFailed) as caught:
        CALLS[call](s3_store(Away(ManualClock(), error)))
    assert caught.value.__cause__ is error
    assert caught.value.final == (error in STAYS)
    assert caught.value.reason
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.final) == (str(caught.value), caught.value.final), "workers' errors reach the driver"


def test_answers_are_kept_apart() -> None:
    store = s3_store()
    store.put("a", b"1")
    with pytest.raises(AlreadyThere):
        store.put_if_absent("a", b"2")
    with pytest.raises(FileNotFoundError) as missing:
        store.get("b")
    assert not isinstance(missing.value, StoreFailed)
    assert store.list("nowhere") == []
    assert not may_mend(AlreadyThere("a"))
    assert not may_mend(FileNotFoundError(errno.ENOENT, "b"))


def test_a_condition_that_does_not_hold_is_a_name_that_is_taken() -> None:
    """s3fs has a word for it only if the server names the condition, and some do not."""
    bucket = Away(ManualClock(), as_s3fs(OSError(errno.EINVAL, "a pre-condition did not hold"), 412))
    with pytest.raises(AlreadyThere):
        s3_store(bucket).put_if_absent("a", b"")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.ENOSPC, "full"), "Free space or repair the store, and start the app again"),
        (PermissionError("Access Denied"), "Check its credentials and what they allow, and start"),
        (as_s3fs(OSError(errno.EPERM, "no"), 403), "Check its credentials"),
        (NoCredentialsError("Unable to locate credentials"), "Check its credentials"),
        (FileNotFoundError(errno.ENOENT, "no such bucket"), "Create the place, or name another one, and start"),
    ],
)
def test_what_to_do_is_told(error: Exception, remedy: str) -> None:
    assert remedy in str(failed("write", "a", error))


@pytest.mark.parametrize("call", ["put", "put_if_absent"])
def test_a_bucket_that_does_not_exist_is_told_at_once(call: str) -> None:
    """Drivers say that something is not found; a write has nothing to find."""
    bucket = Away(ManualClock(), FileNotFoundError(errno.ENOENT, "The specified bucket does not exist"))
    with pytest.raises(StoreFailed, match="bucket does not exist") as caught:
        CALLS[call](s3_store(bucket))
    assert caught.value.final


@pytest.mark.parametrize("error", [TypeError("unexpected argument"), AssertionError("never")])
def test_a_fault_of_the_program_is_not_the_stores(error: Exception) -> None:
    with pytest.raises(type(error)):
        s3_store(Away(ManualClock(), error)).get("a")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", MENDS, ids=text)
def test_what_may_mend_is_waited_for(call: str, error: Exception) -> None:
    clock = ManualClock()
    bucket = Away(clock, error)
    bucket.store.clear()
    store = PatientStore(s3_store(bucket), now=clock, wait=clock.advance)
    try:
        CALLS[call](store)
    except FileNotFoundError:
        assert call in ("get", "copy"), "an answer at last: there is nothing"
    assert clock() >= 60.0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", STAYS, ids=text)
def test_what_stays_is_told_at_once(call: str, error: Exception) -> None:
    clock = ManualClock()
    store = PatientStore(s3_store(Away(clock, error)), now=clock, wait=clock.advance)
    with pytest.raises(StoreFailed):
        CALLS[call](store)
    assert clock() == 0.0


def test_a_local_write_says_what_waiting_does(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreFailed) as caught:
        LocalStore(tmp_path).put("x" * 300, b"")
    assert caught.value.final
    with pytest.raises(StoreFailed) as caught:
        LocalStore(tmp_path / "file").put("a", b"")
    assert not caught.value.final, "the directory may come back"
    assert not failed("write", "a", OSError(errno.ESTALE, "stale file handle")).final
    assert isinstance(patient_store(str(tmp_path)).store, LocalStore)


WRITERS: dict[str, Callable[[Store], object]] = {
    "manifest": lambda store: ManifestLog(store).commit(next_manifest(None), None),
    "durable checkpoint": lambda store: DurableLog(store).commit(next_manifest(None)),
    "shed note": lambda store: DurableLog(store).note_shed(Epoch(1), Shedding({("a", "b"): 0.5})),
    "epochs to repeat": lambda store: DurableLog(store).note(Replay(1, {})),
    "app record": lambda store: AppRecord("app", 8, {}).write(store),
    "report": lambda store: ReportLog(store).append(
        EpochReport("app", 0, 1.0, 1, False, 1, 1, None, None, 0, Phases())
    ),
    "ledger": lambda store: Ledger(store).add(Entry(1, 0.0, Hold("on target"), Hold("on target")), {}),
    "shed log": lambda store: _noted(ShedLog(store)).write(),
}


def _noted(log: ShedLog) -> ShedLog:
    log.note(ShedDecision(1.0, {"q": 0.5}, {}, ("too much",)))
    return log


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_survives_a_store_that_is_away(writer: str) -> None:
    clock = ManualClock()
    bucket = Away(clock, EndpointConnectionError("Could not connect"))
    WRITERS[writer](PatientStore(s3_store(bucket), now=clock, wait=clock.advance))
    assert clock() >= 60.0
    assert bucket.store, "it is written"


def test_a_claim_is_renewed_after_errors_that_are_no_os_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.blocks.claim.RENEW_S", 0.001)
    bucket, beaten, failures = S3Like(), threading.Event(), [3]

    def fail(call: str, path: str) -> str | None:
        if call == "put" and failures[0] > 0:
            failures[0] -= 1
            return BEFORE
        if call == "put":
            beaten.set()
        return None

    bucket.error = lambda: EndpointConnectionError("Could not connect")
    bucket.fail = fail
    claim = Claim(s3_store(bucket), 1, Holder("host", "boot", 1, "0"))
    assert beaten.wait(30.0)
    claim.release()
    assert failures == [0]


def test_the_fence_waits_for_the_store() -> None:
    """Else an epoch whose manifest has landed would fail because of a moment without the store."""
    bucket, failures = S3Like(), [2]

    def fail(call: str, path: str) -> str | None:
        failures[0] -= call == "list"
        return BEFORE if call == "list" and failures[0] >= 0 else None

    bucket.error = lambda: EndpointConnectionError("Could not connect")
    claim = Claim(s3_store(bucket), 1, Holder("host", "boot", 1, "0"))
    bucket.fail = fail
    with pytest.raises(StoreFailed):
        claim.look()
    claim.check()
    assert failures[0] < 0
    claim.release()

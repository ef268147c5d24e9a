"""What a real S3 server and its driver say when something is wrong, and what becomes of it."""

import threading

import pytest
from s3_kit import S3, Key, a_place, s3_store, stranger

from springtide.blocks.claim import claim
from springtide.blocks.errors import StoreFailed
from springtide.blocks.patience import PatientStore
from springtide.blocks.store import Store, open_store
from springtide.testing import ManualClock


@pytest.fixture(autouse=True)
def _one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver does not try again by itself: whether we do is the question."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


def impatient(store: Store) -> PatientStore:
    """It must not wait."""

    def never(seconds: float) -> None:
        raise AssertionError("waiting does not mend this")

    return PatientStore(store, now=ManualClock(), wait=never)


CALLS = {
    "put": lambda store: store.put("a", b""),
    "put_if_absent": lambda store: store.put_if_absent("a", b""),
    "get": lambda store: store.get("a"),
    "list": lambda store: store.list("a"),
    "delete": lambda store: store.delete(["a"]),
    "remove": lambda store: store.remove("a"),
}


@pytest.fixture(scope="module")
def checked() -> S3:
    """A server that knows one key."""
    with S3(checked=True) as running:
        yield running


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("known", [False, True], ids=["an unknown key", "a wrong secret"])
def test_who_is_not_let_in_is_told_at_once(
    checked: S3, monkeypatch: pytest.MonkeyPatch, call: str, known: bool
) -> None:
    key = Key(checked.key.id, stranger().secret) if known else stranger()
    checked.use(monkeypatch, key)
    with pytest.raises(StoreFailed, match="Check its credentials and what they allow") as caught:
        CALLS[call](impatient(s3_store()))
    assert caught.value.final
    assert key.secret not in str(caught.value)
    assert key.secret not in repr(caught.value)


def test_who_has_the_key_is_let_in(checked: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    checked.use(monkeypatch)
    store = s3_store()
    store.put("a", b"1")
    assert store.get("a") == b"1"


@pytest.mark.usefixtures("s3")
def test_without_credentials_it_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreFailed, match="Check its credentials"):
        impatient(s3_store()).put("a", b"")


@pytest.mark.usefixtures("s3")
def test_a_bucket_that_does_not_exist_is_told_at_once() -> None:
    store = open_store(a_place("nowhere"))
    told = r"bucket does not exist\. Create the place, or name another one"
    for call in (lambda: impatient(store).put("a", b""), lambda: impatient(store).put_if_absent("a", b"")):
        with pytest.raises(StoreFailed, match=told) as caught:
            call()
        assert caught.value.final
    with pytest.raises(StoreFailed, match="bucket does not exist"):
        claim(store)
    assert store.list("") == []


def test_a_server_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    server, tried, done = S3(), threading.Event(), list[str]()
    server.use(monkeypatch, stranger())
    store = s3_store()
    with pytest.raises(StoreFailed) as caught:
        store.put("a", b"1")
    assert not caught.value.final

    def wait(seconds: float) -> None:
        tried.set()
        threading.Event().wait(seconds)

    def write() -> None:
        PatientStore(store, wait=wait).put("a", b"1")
        done.append("written")

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    try:
        assert tried.wait(60)
        server.start()
        writing.join(120)
        assert done == ["written"]
        assert store.get("a") == b"1"
    finally:
        server.stop()

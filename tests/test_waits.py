"""Waits have an end, and say what they were for."""

import logging
import pickle
import threading

import pytest

from springtide.errors import SpringtideError
from springtide.waits import WaitedTooLong, join, let_go


@pytest.fixture
def endless() -> "threading.Thread":
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="endless", daemon=True)
    thread.start()
    yield thread
    end.set()


def test_the_error_says_what_how_long_and_what_to_do() -> None:
    error = WaitedTooLong("a durable checkpoint", 3.5, "See whether the store answers")
    assert str(error) == "waited 3.5 s for a durable checkpoint, which did not come. See whether the store answers"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, SpringtideError)
    assert isinstance(error, TimeoutError)


def test_a_thread_that_does_not_end_is_an_error(endless: threading.Thread) -> None:
    with pytest.raises(WaitedTooLong, match=r"thread endless to end, which did not come. End the process"):
        join(endless, 0.01, "End the process")


def test_a_thread_that_is_let_go_leaves_a_line_in_the_log(
    endless: threading.Thread, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        let_go(endless, 0.01)
    assert "thread endless to end" in caplog.text


def test_a_thread_that_ends_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    join(thread, 10, "")
    let_go(thread, 10)
    assert not caplog.text

"""What a person is told when Spark's own part of an app has failed."""

from typing import Any

import pytest
from pyspark.errors import PySparkException

from springtide.dataflow.errors import StepFailed
from springtide.engine.lifecycle import root_cause as explained

QUERY = "[STREAM_FAILED] Query [id = 1-2, runId = 3-4] terminated with exception: {} SQLSTATE: XXKST"
SPARK: Any = None


@pytest.fixture(autouse=True)
def living(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that has not ended."""
    monkeypatch.setattr(explained, "jvm_status", lambda spark, wait_s: None)


def test_a_disk_that_is_too_full_for_sparks_own_log_comes_with_the_remedy() -> None:
    told = explained.by_spark(PySparkException(QUERY.format("No space left on device")), SPARK)
    assert isinstance(told, StepFailed)
    assert told.reason == "No space left on device"
    assert "log of offsets to the checkpoint" in told.hint
    assert "Free space there, and start the app again" in told.hint


def test_any_other_failure_is_told_as_it_is() -> None:
    told = explained.by_spark(PySparkException(QUERY.format("no such topic")), SPARK)
    assert isinstance(told, StepFailed)
    assert (told.reason, told.hint) == ("no such topic", "")

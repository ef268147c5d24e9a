"""What a failed Spark job says, for people: the step, and the reason without Spark's own frames."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from springtide.blocks.errors import TakenOver
from springtide.confidential import hide
from springtide.dataflow.errors import StepFailed
from springtide.errors import SpringtideError

_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+): (.*)$")
_STEP = re.compile(r"step '([A-Za-z0-9_-]+)' failed while ([a-z ]+): (.*)")
_WHERE = re.compile(r"^  at .+:\d+ in .+$", re.MULTILINE)
_JAVA = re.compile(r"^(?:: |Caused by: )[\w.$]+: (?:\[[A-Z0-9_.]+\] )?(.*?)\.?(?:\s+SQLSTATE: \w+)?$", re.MULTILINE)
_QUERY = re.compile(r"^\[STREAM_FAILED\] Query \[id = [^]]*\] terminated with exception: ")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_ABORTED = re.compile(r"Job aborted due to stage failure: .*\(TID \d+\) \(.*?\): (?:[\w.$]+: )?")


@contextmanager
def noted(what: str) -> Iterator[None]:
    """An error that a person will see gets a note of what it means."""
    try:
        yield
    except TakenOver:
        raise  # What becomes of the epoch, its successor decides.
    except SpringtideError as error:
        error.add_note(what)
        raise


def explain(error: Exception, step: str, doing: str = "running its job") -> StepFailed:
    """The step and the reason of a failed job; a function's own traceback comes along."""
    if isinstance(error, StepFailed):
        return error
    text = str(error)
    found = _STEP.search(text)
    if found:
        where = _WHERE.search(text, found.end())
        return StepFailed(found[1], found[2], found[3], where[0] if where else _user_traceback(text))
    if isinstance(error, PySparkException):
        return StepFailed(step, doing, _last_line(text), _user_traceback(text))
    return StepFailed(step, doing, _java_reasons(text) or f"{type(error).__name__}: {error}")


def stream_failure(text: str) -> str:
    """What a failed query says, without its ids, its plan and the JVM's stack."""
    told = text.split("\n\nJVM")[0].split("=== Streaming Query ===")[0]
    return hide(_STATE.sub("", _QUERY.sub("", told)).strip())


def _last_line(text: str) -> str:
    """The exception of a Python traceback, or Spark's own message."""
    before_jvm = text.split("\n\tat ")[0].split("\n\nJVM stacktrace")[0]
    for line in reversed(before_jvm.splitlines()):
        if _RAISED.match(line.strip()):
            return line.strip()
    return before_jvm.strip().splitlines()[0] if before_jvm.strip() else text


def _java_reasons(text: str) -> str:
    """The messages of a Java exception that PySpark does not know, and of its causes."""
    return "; ".join(dict.fromkeys(_ABORTED.sub("", message) for message in _JAVA.findall(text)))


def _user_traceback(text: str) -> str:
    """The frames of a Python traceback that are neither Spark's nor ours."""
    frames = re.findall(r'  File "([^"]+)", line (\d+), in (\S+)\n\s+(.+)', text)
    mine = [f for f in frames if "pyspark" not in f[0] and "/springtide/" not in f[0]]
    return "\n".join(f"  at {path}:{line} in {name}: {code}" for path, line, name, code in mine)

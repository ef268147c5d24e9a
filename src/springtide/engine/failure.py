"""What a failed Spark job says, for people: the step, and the reason without Spark's own frames."""

import re

from pyspark.errors import PySparkException

from springtide.dataflow.errors import StepFailed

_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+): (.*)$")
_STEP = re.compile(r"step '([A-Za-z0-9_-]+)' failed while ([a-z ]+): (.*)")


def explain(error: PySparkException, step: str, doing: str = "running its job") -> StepFailed:
    """The step and the reason of a failed job; a function's own traceback comes along."""
    text = str(error)
    found = _STEP.search(text)
    if found:
        return StepFailed(found[1], found[2], found[3], _user_traceback(text))
    return StepFailed(step, doing, _last_line(text), _user_traceback(text))


def _last_line(text: str) -> str:
    """The exception of a Python traceback, or Spark's own message."""
    before_jvm = text.split("\n\tat ")[0].split("\n\nJVM stacktrace")[0]
    for line in reversed(before_jvm.splitlines()):
        if _RAISED.match(line.strip()):
            return line.strip()
    return before_jvm.strip().splitlines()[0] if before_jvm.strip() else text


def _user_traceback(text: str) -> str:
    """The frames of a Python traceback that are neither Spark's nor ours."""
    frames = re.findall(r'  File "([^"]+)", line (\d+), in (\S+)\n\s+(.+)', text)
    mine = [f for f in frames if "pyspark" not in f[0] and "/springtide/" not in f[0]]
    return "\n".join(f'  at {path}:{line} in {name}: {code}' for path, line, name, code in mine)

"""Changes of an app that its state can't follow, in the words in which the app is written."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

STEP = "step"
SOURCE = "source"
TELLING = (STEP, "kind", "key", "operation", "state")
"""What a keyed step is recorded with, the most telling first: a change of one often brings changes of the others."""

KINDS = {
    "aggregate": "aggregate(...)",
    "window-aggregate": "window(...).aggregate(...)",
    "reduce": "reduce(...)",
    "dedupe": "dedupe(...)",
}
FUNCTIONS = {
    "Count": "count",
    "Sum": "sum",
    "Mean": "mean",
    "Distinct": "distinct",
    "TopK": "top_k",
    "EstimatedCount": "count",
    "EstimatedSum": "sum",
    "EstimatedMean": "mean",
}
"""By the class that is recorded: the function of `springtide.agg` that a person calls."""
_RECORDED = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)")


def telling(what: str) -> tuple[int, str]:
    """To sort what is recorded of a step, the most telling first."""
    return TELLING.index(what) if what in TELLING else len(TELLING), what


def in_words(what: str, recorded: Any, now: Any) -> str:
    """A change, told to the person who has made it."""
    if what == STEP:
        return _renamed(now)
    if what == SOURCE:
        return f"it was sources.{recorded}(...) and is sources.{now}(...) now, which has other offsets"
    if what == "kind":
        return f"it was {KINDS.get(recorded, recorded)} and is {KINDS.get(now, now)} now"
    if what in ("key", "state") and isinstance(recorded, Sequence) and isinstance(now, Sequence):
        return f"its {what} was {_columns(recorded)} and is {_columns(now)} now"
    if what == "operation" and isinstance(recorded, Mapping) and isinstance(now, Mapping):
        return _operation(recorded, now)
    return f"{what} was {recorded} and is {now} now"


def _renamed(added: Sequence[str]) -> str:
    if not added:
        return "the app has no such step any more"
    names = ", ".join(map(repr, added))
    return f"the app has no such step any more, but {names} is new. If you renamed it, give it back its name"


def _operation(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What became of the results of an aggregation, and of its window."""
    before, after = recorded.get("aggregates", {}), now.get("aggregates", {})
    said = [f"the result {n} = {call(after[n])} was added" for n in after if n not in before]
    said += [f"the result {n} = {call(before[n])} is gone" for n in before if n not in after]
    said += [
        f"the result {n} was {call(before[n])} and is {call(after[n])} now"
        for n in before
        if n in after and before[n] != after[n]
    ]
    if recorded.get("window") != now.get("window"):
        said.append(f"its window was {_window(recorded.get('window'))} and is {_window(now.get('window'))} now")
    return "; ".join(said) or f"its operation was {dict(recorded)} and is {dict(now)} now"


def call(recorded: str) -> str:
    """A recorded aggregate as a person writes it: `agg.max('price')` for `Extreme(column='price', greatest=True)`."""
    found = _RECORDED.fullmatch(recorded)
    if found is None:
        return recorded
    name, arguments = found["name"], found["arguments"]
    if name == "Extreme":
        function = "max" if "greatest=True" in arguments else "min"
        arguments = re.sub(r",? *greatest=\w+", "", arguments)
    elif name in FUNCTIONS:
        function = FUNCTIONS[name]
    else:
        return recorded
    arguments = re.sub(r"\bcolumn=", "", arguments)
    arguments = "" if arguments == "None" else arguments
    if name.startswith("Estimated"):
        arguments = f"{arguments}, estimate=True" if arguments else "estimate=True"
    return f"agg.{function}({arguments})"


def _columns(fields: Sequence[Sequence[str]]) -> str:
    return ", ".join(" ".join(field) if not isinstance(field, str) else field for field in fields) or "nothing"


def _window(window: Mapping[str, int] | None) -> str:
    if window is None:
        return "none"
    size, slide = (window[name] / 1_000_000 for name in ("size_us", "slide_us"))
    return f"{size:g} seconds" if size == slide else f"{size:g} seconds, every {slide:g}"

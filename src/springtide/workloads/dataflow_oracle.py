"""What the sink of a dataflow has to get, and what is wrong with what it got.

Worked out in plain Python by walking every way through the dataflow, event by event, and not as the app does it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from springtide.connectors.sources import Generator
from springtide.workloads.dataflow_app import FACTOR
from springtide.workloads.dataflows import SOURCE, Dataflow

Way = tuple[str, ...]
"""Tasks, from one that the source feeds to one that the sink takes from."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Expected:
    """What the sink has to get of some events."""

    rows: Counter[tuple[int, int]]
    """Every (id, path) once."""
    seen: Counter[tuple[str, int, int]]
    """Every (last task, key, count) once: the counts of a key at a task are 1 to n, in whatever order."""
    tally: Mapping[int, int]
    """By key: the sum over its rows of all counts on their ways."""
    key_of: Callable[[int], int]
    """By id."""
    last_of: Mapping[int, str]
    """By path: the task that it ends at."""


class Faults(NamedTuple):
    """Rows that are missing, and rows that are there too often or should not be there at all."""

    lost: int
    duplicated: int


def expected(dataflow: Dataflow, ids: Iterable[int], key_of: Callable[[int], int]) -> Expected:
    """What the sink gets of these events, once all are through. They are all that there were, from the first on."""
    events = list(ids)
    found = list(ways(dataflow))
    paths = {way: path_of(dataflow, way) for way in found}
    arrivals = {way[:end] for way in found for end in range(1, len(way) + 1)}
    copies = Counter(arrival[-1] for arrival in arrivals)
    passing = Counter(name for way in found for name in way)
    events_by_key = Counter(map(key_of, events))

    def tally(events: int) -> int:
        # Each count at a task reaches the sink once for every way that goes on from there.
        return sum(passing[t] // copies[t] * _sum_to(events * copies[t]) for t in copies)

    return Expected(
        rows=Counter((event, path) for event in events for path in paths.values()),
        seen=Counter(
            (last, key, count)
            for last in {way[-1] for way in found}
            for key, n in events_by_key.items()
            for count in range(1, n * copies[last] + 1)
        ),
        tally={key: tally(n) for key, n in events_by_key.items()},
        key_of=key_of,
        last_of={path: way[-1] for way, path in paths.items()},
    )


def faults(rows: Iterable[Row], expected: Expected) -> Faults:
    """How many rows the sink lacks, and how many it has that it should not have."""
    got = Counter((row["id"], row["path"]) for row in rows)
    return Faults((expected.rows - got).total(), (got - expected.rows).total())


def miscounted(rows: Iterable[Row], expected: Expected) -> int:
    """How many counts are wrong: state that was lost or updated twice shows here even if all rows are right.

    Of the last tasks, each count that is missing or too many; of those before them, each key whose tally is off.
    """
    seen: Counter[tuple[str, int, int]] = Counter()
    tally: Counter[int] = Counter()
    for row in rows:
        key = expected.key_of(row["id"])
        seen[expected.last_of.get(row["path"], "unknown"), key, row["seen"]] += 1
        tally[key] += row["tally"]
    off = (expected.seen - seen).total() + (seen - expected.seen).total()
    return off + sum(tally[key] != expected.tally.get(key, 0) for key in tally.keys() | expected.tally.keys())


def keys_of(source: Generator, events: int) -> dict[int, int]:
    """By id: the key of each of a generator's first events."""
    rows = source.spec.rows(0, events, 0.0)
    return dict(zip(rows["id"].to_pylist(), rows["key"].to_pylist(), strict=True))


def ways(dataflow: Dataflow) -> Iterator[Way]:
    """Every way from the source to the sink."""
    ahead: list[Way] = [(task,) for task in dataflow.consumers[SOURCE]]
    while ahead:
        way = ahead.pop()
        if way[-1] in dataflow.last:
            yield way
        ahead += [(*way, task) for task in dataflow.consumers[way[-1]]]


def path_of(dataflow: Dataflow, way: Way) -> int:
    """The `path` of an event that has come this way: a signed number of 64 bits."""
    numbers = {task.name: number for number, task in dataflow.numbered}
    path = 0
    for name in way:
        path = path * FACTOR + numbers[name]
    return (path + 2**63) % 2**64 - 2**63


def _sum_to(n: int) -> int:
    return n * (n + 1) // 2

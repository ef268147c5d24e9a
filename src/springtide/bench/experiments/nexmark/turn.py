"""One turn: a query over a directory of events by one of those who compete, from its first epoch to its last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from springtide.workloads.nexmark.queries.catalogue import Query

FILES_AN_EPOCH = 2
"""Of each table, one for each core; Springtide and Spark alike."""
MEMORY = "8g"
"""For Springtide's and Spark's driver: Spark's own store keeps the state of turns that have just ended for a while."""
LIMIT_S = 900.0
"""For one turn."""
ANSWER = "answer.parquet"
"""The file in an output directory with all rows that Springtide or Spark gave, in their order."""


@dataclass(frozen=True)
class Turn:
    """What a turn showed."""

    seconds: float
    """From the start of its first epoch to the end of the last one that had rows; Flink's job as a whole."""
    epochs_s: tuple[float, ...] = ()
    state_bytes: int | None = None
    """At its end; None if it does not tell."""


class Contestant(Protocol):
    """Runs queries in a process that stays warm in between."""

    @property
    def name(self) -> str:
        """What the figures call it."""

    def lacks(self, query: Query) -> str | None:
        """Why it can't run a query; None if it can."""

    def turn(self, query: Query, directory: Path, output: Path | None) -> Turn:
        """Run a query over the events in a directory; its rows go to Parquet files in `output`, or nowhere."""


def course(progress: Sequence[Mapping[str, Any]], state_bytes: int | None = None) -> Turn:
    """A turn by the progress of a streaming query, as Spark tells it; epochs after the last rows do not count."""
    with_rows = [p for p in progress if any(s["startOffset"] != s["endOffset"] for s in p["sources"])]
    if not with_rows:
        raise ValueError(f"expected epochs with rows, got {len(progress)} without any")
    took = [p["durationMs"]["triggerExecution"] / 1e3 for p in with_rows]
    began, last = (datetime.fromisoformat(p["timestamp"]) for p in (with_rows[0], with_rows[-1]))
    return Turn((last - began).total_seconds() + took[-1], tuple(took), state_bytes)


def as_told(progress: Sequence[Any]) -> list[dict[str, Any]]:
    """The progress that a query has made, as plain values."""
    return [json.loads(p.json) for p in progress]

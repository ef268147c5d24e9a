"""One query: each contestant's rows are compared with the oracle's, then all take turns."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from springtide.bench.experiments.nexmark.result import Outcome, Result
from springtide.bench.experiments.nexmark.turn import Contestant
from springtide.workloads.nexmark.oracle import Oracle
from springtide.workloads.nexmark.queries.catalogue import Query

TOLD = 300
"""Characters of an error."""


@dataclass(frozen=True)
class Rotation:
    """Who takes part, and with what."""

    contestants: Sequence[Contestant]
    events: Path
    """Of the turns that count."""
    oracle: Oracle
    """Of the events of the first turn, which does not count: it warms up, and its rows are compared."""
    scratch: Path
    rounds: int

    def result(self, query: Query) -> Result:
        """The turns of a round follow one another; whoever fails has no further ones."""
        outcomes = {contestant.name: self._tried(contestant, query) for contestant in self.contestants}
        for _ in range(self.rounds):
            for contestant in self.contestants:
                before = outcomes[contestant.name]
                if before.equal is not None:
                    outcomes[contestant.name] = self._timed(contestant, query, before)
        return Result(query, rows_of(query, self.events), outcomes)

    def _tried(self, contestant: Contestant, query: Query) -> Outcome:
        if lacks := contestant.lacks(query):
            return Outcome(why_not=lacks)
        output = self.scratch / "answer"
        try:
            contestant.turn(query, self.oracle.directory, output)
            found = self.oracle.difference(query, pq.read_table(output))
        except Exception as error:
            return Outcome(why_not=told(error))
        finally:
            shutil.rmtree(output, ignore_errors=True)
        if found.equal:
            return Outcome(equal=True)
        return Outcome(equal=False, why_not=f"of {found.rows} rows {found.missing} are missing, {found.surplus} others")

    def _timed(self, contestant: Contestant, query: Query, before: Outcome) -> Outcome:
        try:
            turn = contestant.turn(query, self.events, None)
        except Exception as error:
            return Outcome(why_not=told(error))
        return replace(before, turns=(*before.turns, turn))


def rows_of(query: Query, directory: Path) -> int:
    """Of the tables that a query reads."""
    files = [file for table in query.reads for file in (directory / table).glob("*.parquet")]
    return sum(pq.read_metadata(file).num_rows for file in files)


def told(error: Exception) -> str:
    """The first line of an error, without what may follow it."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:TOLD]

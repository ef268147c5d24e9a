"""Springtide's turn: the query as an app, embedded in a Spark of its own."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from springtide.bench.experiments.nexmark.turn import ANSWER, FILES_AN_EPOCH, LIMIT_S, MEMORY, Turn, as_told, course
from springtide.bench.harness.arena import Arena, session
from springtide.connectors import sinks
from springtide.workloads.nexmark.queries.catalogue import Query
from springtide.workloads.nexmark.run import build


@dataclass(frozen=True)
class Springtide:
    place: Arena
    name: str = "springtide"

    def lacks(self, query: Query) -> str | None:
        return None

    def turn(self, query: Query, directory: Path, output: Path | None) -> Turn:
        return self.place.call(self.name, _turn, query, directory, output, self.place.scratch)


def _turn(query: Query, directory: Path, output: Path | None, scratch: Path) -> Turn:
    """In its own process; every turn has a new checkpoint."""
    kept = sinks.memory()
    app = build(query, directory, sinks.noop() if output is None else kept, files_an_epoch=FILES_AN_EPOCH)
    own = Path(tempfile.mkdtemp(prefix="springtide-", dir=scratch))
    running = app.start(
        session(MEMORY), checkpoint=str(own / "checkpoint"), local=str(own / "local"), until="available"
    )
    try:
        reports = running.wait(LIMIT_S)
        if output is not None:
            output.mkdir(parents=True)
            pq.write_table(pa.concat_tables(kept.epochs[epoch] for epoch in sorted(kept.epochs)), output / ANSWER)
        return course(as_told(running.query.recentProgress), sum(step.state_bytes for step in reports[-1].operators))
    finally:
        running.stop()
        shutil.rmtree(own)

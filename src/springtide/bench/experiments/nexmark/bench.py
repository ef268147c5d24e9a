"""The Nexmark queries, one by one, beside the SQL of Spark's streaming and of Flink: speed, and whether rows are right.

All read the same Parquet files, as fast as they can, on the same cores. Springtide and Spark take two files of each
table an epoch, and both write a checkpoint on the same disk. Flink takes what it can get, and makes no checkpoints.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from springtide.bench.experiments.nexmark.rotation import Rotation
from springtide.bench.experiments.nexmark.shown import findings
from springtide.bench.experiments.nexmark.turn import FILES_AN_EPOCH, Contestant
from springtide.bench.experiments.nexmark.with_flink import flink, installed
from springtide.bench.experiments.nexmark.with_spark import Spark
from springtide.bench.experiments.nexmark.with_springtide import Springtide
from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Figures, Findings
from springtide.workloads.nexmark.files import write
from springtide.workloads.nexmark.oracle import Oracle
from springtide.workloads.nexmark.queries.catalogue import CATALOGUE, chosen

NO_FLINK = "Flink did not compete, as it is not here: `make flink` fetches it"
SEED = 7
QUICK = ("q0", "q3", "q5", "q8", "q11")


@dataclass(frozen=True)
class NexmarkBench:
    """Turns over all events; before them, one over fewer that warms up, and whose rows are compared."""

    events: int = 2_000_000
    queries: tuple[str, ...] = tuple(CATALOGUE)
    compared: int = 400_000
    """Events of the first turn: 40 s of event time, in which windows close."""
    epochs: int = 4
    """Of half a million events: about half a second each, which is how long Flink may hold rows back, too."""
    rounds: int = 3

    @classmethod
    def quick(cls, events: int, queries: tuple[str, ...]) -> "NexmarkBench":
        """A smaller one."""
        return cls(min(events, 300_000), queries or QUICK, 300_000, epochs=3, rounds=1)

    def run(self, tell: Callable[[str], object] = lambda where: None) -> Findings:
        """`tell` is told where the experiment is, as it takes a while."""
        queries, parts = chosen(self.queries), self.epochs * FILES_AN_EPOCH
        with arena("nexmark") as place, ExitStack() as stack:
            events, compared = (
                write(place.scratch / name, number, SEED, parts=parts)
                for name, number in {"events": self.events, "compared": self.compared}.items()
            )
            contestants: list[Contestant] = [Springtide(place), Spark(place)]
            if python := installed():
                contestants.append(stack.enter_context(flink(python, place.scratch)))
            rotation = Rotation(contestants, events, Oracle(compared), place.scratch, self.rounds)
            results = []
            for number, query in enumerate(queries, start=1):
                tell(f"{query.name}, {query.title.lower()}: {number} of {len(queries)} queries")
                results.append(rotation.result(query))
        load: dict[str, Figures] = {
            "events": self.events,
            "compared": self.compared,
            "epochs": self.epochs,
            "rounds": self.rounds,
        }
        return findings(results, load, [] if python else [NO_FLINK])

"""The DataFrames of one epoch: each step's rows, built once, from sources or from committed blocks."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from springtide.blocks.block import BlockRef
from springtide.dataflow.graph import Keyed, Late, Sides, Source
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.epoch.build_step import build
from springtide.engine.epoch.inputs import Inputs
from springtide.engine.epoch.sides_together import together
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.shedding.rows_taken import Taken
from springtide.engine.shedding.sampler import (
    CLASS,
    LOT,
    Counted,
    Producer,
    Tally,
    by_utility,
    classes,
    of_step,
    tally_steps,
)
from springtide.engine.spark.internals import map_in_arrow, spark_schema
from springtide.engine.worker.read_blocks import ReadBlocks
from springtide.engine.worker.stateless import LateRows
from springtide.ids import Epoch, WorkerId
from springtide.plan.shedding import Shedding
from springtide.state.logic import Moment

Form = tuple[str, tuple[tuple[str, float], ...]]
"""A step, and the shares of its producers' rows that it is made of."""


class Part(NamedTuple):
    """Blocks that one task reads, and where."""

    worker: WorkerId
    refs: tuple[BlockRef, ...]


class EpochDataFrames:
    """Builds DataFrames on demand; rows that several steps read are kept until the epoch ends.

    A step may be there in several forms: with the rows that this consumer gets, and with those that another gets.
    """

    def __init__(
        self,
        bound: BoundGraph,
        inputs: Inputs,
        batch: DataFrame,
        pool: ExecutorPool,
        epoch: Epoch,
        shedding: Shedding,
        taken: Taken | None = None,
        giving: Sequence[int] | None = None,
    ) -> None:
        """`giving` are the numbers of the sources that have rows in this epoch; None if nobody knows."""
        self.bound = bound
        self.pool = pool
        self.epoch, self.shedding, self.taken = epoch, shedding, taken
        self.moments: Mapping[str, Moment] = {}
        """By keyed step: what the epoch believes of time, once it is computed."""
        self.outputs: dict[str, tuple[BlockRef, ...]] = {}
        """By step: the blocks that hold its rows."""
        self._spark = batch.sparkSession
        self._kept: list[DataFrame] = []
        self._lock = threading.RLock()
        self._frames: dict[Form, DataFrame] = {}
        self._uses = Counter(self._forms())
        self._producers: dict[str, Producer] = {}
        self._counted: dict[str, Counted] = {}
        """By source that may be shed: what is told of the rows that were not."""
        self._inputs, self._batch, self._giving = inputs, batch, giving
        self._sources = self._read()

    def __enter__(self) -> "EpochDataFrames":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()

    def restart(self) -> None:
        """Forget what was computed of the epoch: it is run anew.

        Rows that were kept are read anew, too: what a job that failed has told of them is lost.
        """
        with self._lock:
            while self._kept:
                self._kept.pop().unpersist()
            self._sources = self._read()
            self.outputs.clear()
            self._frames.clear()
            self._producers.clear()
            self._counted.clear()

    def _read(self) -> dict[str, DataFrame]:
        """By source: its rows, or the records that were not shed; kept if they have to be told apart."""
        if self._giving is not None and (apart := self._inputs.each(self._batch, self._giving)) is not None:
            return apart
        batch = self._scanned() if self._inputs.sheds else self._batch
        also = (LOT,) if self._inputs.sheds else ()
        return self._inputs.split(self._keep(batch) if self._inputs.several else batch, *also)

    def _scanned(self) -> DataFrame:
        """Rows that are shed by their utility have to be decoded first: none of them is shed in the scan."""
        sources = self.bound.graph.of(Source)
        most = {s.name: max(self._shares[s.name]) if s.utility is None else 1.0 for s in sources}
        return self._inputs.scanned(self._batch, self.epoch, most)

    def moved(self) -> None:
        """The workers were swapped: blocks are read by others than those who wrote them."""
        with self._lock:
            keyed = {node.name for node in self.bound.graph.of(Keyed)}
            self._frames = {form: frame for form, frame in self._frames.items() if form[0] not in keyed}
            self._producers = {name: each for name, each in self._producers.items() if name not in keyed}

    def input_of(self, consumer: str) -> DataFrame:
        """The rows that flow into a keyed step, or that sinks take from a stateless one, after shedding."""
        node = self.bound.graph[consumer]
        return self._rows(node.parents[0] if isinstance(node, Keyed) else consumer, consumer)

    def sides_of(self, consumer: str) -> list[DataFrame]:
        """The rows of each input of a keyed step that has several, after shedding."""
        way = self.bound.graph[self.bound.graph[consumer].parents[0]]
        return [self._rows(parent, consumer) for parent in way.parents]

    def written_for(self, consumer: str) -> tuple[BlockRef, ...]:
        """The blocks that hold a keyed step's input as it is; none if anything is to be done to it on the way."""
        graph, schemas = self.bound.graph, self.bound.schemas
        step = graph[consumer].parents[0]
        producers = graph.merged(step)
        if any(not schemas[p].equals(schemas[step]) or self.shedding.share(p, consumer) < 1 for p in producers):
            return ()
        return tuple(ref for p in producers for ref in self.outputs.get(p, ()))

    def parts(self, refs: Sequence[BlockRef], *, by_worker: bool = False) -> list[Part]:
        """What each task reads: a block, or all that one worker has."""
        alone = [Part(worker, (ref,)) for worker, ref in zip(self._readers(refs), refs, strict=True)]
        if not by_worker:
            return alone
        together: dict[WorkerId, tuple[BlockRef, ...]] = {}
        for part in alone:
            together[part.worker] = together.get(part.worker, ()) + part.refs
        return [Part(*part) for part in together.items()]

    def read(self, parts: Sequence[Part], rows: pa.Schema) -> tuple[DataFrame, ReadBlocks]:
        """A task on each part's worker, which gets the part's number, and the function that it reads it by."""
        numbers = self._spark.range(0, len(parts), 1, len(parts))
        placed = self.pool.place(numbers, [part.worker for part in parts])
        return placed, ReadBlocks(tuple(part.refs for part in parts), rows, self.pool.storage)

    def _rows(self, step: str, consumer: str) -> DataFrame:
        form = self._form(step, consumer)
        with self._lock:
            if form not in self._frames:
                self._frames[form] = self._build(form, consumer)
            return self._frames[form]

    def _form(self, step: str, consumer: str) -> "Form":
        shares = ((p, self.shedding.share(p, consumer)) for p in self.bound.graph.producers(step))
        return step, tuple(sorted(shares))

    def _forms(self) -> Iterator["Form"]:
        """Each form of a step once for every other form that is made of it."""
        graph, made = self.bound.graph, set[tuple[Form, int, Form]]()
        for consumer in graph.feeders:
            if not isinstance(graph[consumer], Keyed):
                yield self._form(consumer, consumer)
            ahead = [consumer]
            while ahead:
                step = ahead.pop()
                into: Form = (step, ()) if isinstance(graph[step], Keyed) else self._form(step, consumer)
                for place, parent in enumerate(graph[step].parents):
                    form = self._form(parent, consumer)
                    if (into, place, form) not in made:
                        made.add((into, place, form))
                        yield form
                        ahead += [] if isinstance(graph[parent], Source | Keyed) else [parent]

    def committed(self, step: str) -> DataFrame:
        """The rows of a step, built from committed blocks only.

        A step that came into the app after the epoch was committed has none.
        """
        node = self.bound.graph[step]
        if step in self.outputs or isinstance(node, Source | Keyed | Late):
            return self._from_blocks(step)
        return build(node, [self.committed(parent) for parent in node.parents])

    def tallies(self, offered: Mapping[str, int]) -> dict[str, Tally]:
        """By producer: what it offered, and what its consumers got. Sources are counted always, keyed steps that shed.

        From the rows that each source gave. Nothing if no query of the app can do with less. To be called once all has
        been computed.
        """
        if not self._inputs.sheds:
            return {}
        graph = self.bound.graph
        found = {name: counted.tally(offered[name]) for name, counted in self._counted.items()}
        steps = {p for p, shares in self._shares.items() if isinstance(graph[p], Keyed) and min(shares) < 1}
        if steps:
            with self.pool.watch.job(min(steps), "counting its rows"):
                found |= tally_steps({step: self._produced(step) for step in steps}, self._shares)
        return found

    @cached_property
    def _shares(self) -> dict[str, list[float]]:
        """By producer: the shares of its rows that its consumers get."""
        found: dict[str, set[float]] = {}
        for consumer, producers in self.bound.graph.feeders.items():
            for name in producers:
                found.setdefault(name, set()).add(self.shedding.share(name, consumer))
        return {name: sorted(shares) for name, shares in found.items()}

    def _produced(self, step: str) -> Producer:
        """A producer's rows, ready to be shed."""
        with self._lock:
            if step not in self._producers:
                node = self.bound.graph[step]
                if isinstance(node, Source):
                    self._producers[step] = self._decoded(node)
                else:
                    self._producers[step] = of_step(self._from_blocks(step), step, self.epoch)
            return self._producers[step]

    def _decoded(self, node: Source) -> Producer:
        """The rows of the records that were not shed in the scan, counted as they are read."""
        step, shares = node.name, self._shares[node.name]
        rows = self._inputs.opened[step].decode(self._sources[step], (LOT,))
        several = sum(uses for form, uses in self._uses.items() if form[0] == step) > 1
        if node.utility is None:
            found = Producer(rows)
        else:
            several = False  # What has to be read twice is kept already.
            with self.pool.watch.job(step, "ranking its rows"):
                found = by_utility(self._keep(rows), node.utility, shares)
        counter = self._inputs.counter
        assert counter is not None, "an app that may shed counts its rows"
        counted, told = counter.classes(found.classified(shares), classes(shares))
        self._counted[step] = Counted(shares, told.lines)
        rows = counted.drop(CLASS)
        return replace(found, rows=self._keep(rows) if several else rows)

    def _build(self, form: "Form", consumer: str) -> DataFrame:
        step, shares = form
        node = self.bound.graph[step]
        if isinstance(node, Keyed):
            share = shares[0][1]
            return self._produced(step).shed(share) if share < 1 else self._from_blocks(step)
        if isinstance(node, Source):
            if self._inputs.sheds:  # Rows that are needed more than once were kept as they were decoded.
                return self._inputs.fitting(step, self._produced(step).shed(shares[0][1]))
            frame = self._inputs.fitting(step, self._sources[step])
        else:
            parents = [self._rows(parent, consumer) for parent in node.parents]
            frame = together(parents, self.bound.sides[step]) if isinstance(node, Sides) else build(node, parents)
            if isinstance(node, Late):
                late = LateRows(node.step, node.lateness, self.moments[node.step])
                frame = map_in_arrow(frame, late, spark_schema(self.bound.schemas[step]))
        fresh = isinstance(node, Source) or self.bound.graph.reads_sources(step)
        return self._keep(frame) if fresh and self._uses[form] > 1 else frame

    def _from_blocks(self, step: str) -> DataFrame:
        refs = self.outputs.get(step, ())
        schema: pa.Schema = self.bound.schemas[step]
        if not refs:
            return self._spark.createDataFrame([], spark_schema(schema))
        numbers, read = self.read(self.parts(refs), schema)
        return map_in_arrow(numbers, read, spark_schema(schema))

    def _readers(self, refs: Sequence[BlockRef]) -> list[WorkerId]:
        """By block: the worker that wrote it, or any if that one is gone."""
        workers = [worker.id for worker in self.pool.plan.workers]
        there = set(workers)
        wrote = [WorkerId(ref.worker) for ref in refs]
        return [w if w in there else workers[number % len(workers)] for number, w in enumerate(wrote)]

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

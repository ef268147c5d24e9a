"""One epoch: read the plan, update every keyed step, commit the manifest, publish, collect garbage."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame

from springtide import faults
from springtide.blocks.block import BlockRef
from springtide.blocks.collect import Collector, Garbage
from springtide.blocks.errors import LineageBroken
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, OperatorState, TornManifest
from springtide.blocks.store import Store
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import FINAL_ONLY, Keyed, Sink
from springtide.engine.bound import BoundGraph
from springtide.engine.failure import explain
from springtide.engine.frames import EpochFrames
from springtide.engine.inputs import Inputs
from springtide.engine.keyed import Setting, run_capture, run_keyed
from springtide.engine.output import CommittedOutput
from springtide.engine.progress import Progress
from springtide.engine.session import prepare_epoch_session
from springtide.engine.sparklog import offsets
from springtide.engine.stopwatch import Stopwatch
from springtide.engine.worker.task import Storage
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport, OperatorReport, Phases
from springtide.plan.plan import Plan
from springtide.state.window import FINAL

FEW_ROWS = 20_000
"""An epoch with fewer rows costs less without preparing them before the shuffle."""


class Stopped(Exception):
    """An epoch was offered after the app had been stopped; Spark will offer it again."""


class EpochRunner:
    """Runs epochs one at a time; Structured Streaming calls it with each micro-batch."""

    def __init__(
        self,
        app: str,
        bound: BoundGraph,
        inputs: Inputs,
        store: Store,
        storage: Storage,
        plan: Plan,
        generation: int,
        progress: Progress,
        on_report: Callable[[EpochReport], None],
    ) -> None:
        self.app, self.bound, self.inputs = app, bound, inputs
        self.store, self.storage, self.plan, self.generation = store, storage, plan, generation
        self.progress, self.on_report = progress, on_report
        self.log = ManifestLog(store)
        self.head = self.log.head()
        self.collector = Collector(self.log)
        self.garbage = self.collector.start(self.head)
        self.failure: BaseException | None = None
        self._turn = threading.Lock()
        self.refused = False
        """An epoch came after the stop: Spark then ends the query with that error, which is none."""
        self._stopped = self._prepared = False
        self._rows_in: dict[str, int] = {}
        """By keyed step: the rows of its last epoch, the guess for the next."""

    def __call__(self, batch: DataFrame, epoch_id: int) -> None:
        """Run one epoch, or publish it again if an earlier driver had committed it."""
        with self._turn:
            if self._stopped:
                self.refused = True
                raise Stopped
            try:
                self._run(batch, Epoch(epoch_id))
            except BaseException as error:
                self.failure = error
                raise

    def stop(self) -> None:
        """Let the epoch in flight finish, and take no other."""
        with self._turn:
            self._stopped = True

    def _run(self, batch: DataFrame, epoch: Epoch) -> None:
        faults.fire("epoch.start", epoch)
        watch = Stopwatch()
        with watch.part("plan"):
            if not self._prepared:
                prepare_epoch_session(batch.sparkSession)
                self._prepared = True
            frames = EpochFrames(self.bound, self.inputs, batch, self.storage)
        replayed = self.head is not None and self.head.epoch == epoch
        reports: list[OperatorReport] = []
        with frames:
            if replayed and self.head is not None:
                manifest, parent = self.head, self._before(self.head)
                frames.outputs.update(manifest.outputs)
            else:
                parent = self._parent_of(epoch)
                with watch.part("compute"):
                    manifest = self._compute(frames, epoch, parent, reports)
                faults.fire("records.collected", epoch)
                with watch.part("commit"):
                    self.log.commit(manifest, parent)
                self.head = manifest
                faults.fire("manifest.after", epoch)
            with watch.part("publish"):
                self._publish(frames, manifest)
        faults.fire("publish.after", epoch)
        with watch.part("collect"):
            self.garbage = Garbage() if replayed else self.collector.committed(manifest)
        self.on_report(self._report(manifest, parent, replayed, frames, reports, watch))

    def _parent_of(self, epoch: Epoch) -> Manifest | None:
        expected = 0 if self.head is None else self.head.epoch + 1
        if epoch != expected:
            raise LineageBroken(epoch, expected - 1)
        return self.head

    def _before(self, manifest: Manifest) -> Manifest | None:
        """The manifest before one; None if there is none to read."""
        try:
            return self.log.read(Epoch(manifest.epoch - 1))
        except (FileNotFoundError, TornManifest):
            return None

    def _compute(
        self, frames: EpochFrames, epoch: Epoch, parent: Manifest | None, reports: list[OperatorReport]
    ) -> Manifest:
        """Update all keyed steps, those that do not need each other side by side."""
        operators: dict[str, OperatorState] = {}
        before = parent.operators if parent is not None else {}
        setting = Setting(self.app, epoch, self.plan, self.storage, self.garbage.blocks)

        def update(node: Keyed) -> tuple[OperatorState, tuple[BlockRef, ...], OperatorReport]:
            few_rows = self._rows_in.get(node.name, FEW_ROWS) < FEW_ROWS
            return run_keyed(node, frames, before.get(node.name, OperatorState()), setting, few_rows=few_rows)

        for level in self.bound.graph.levels():
            for node, (state, output, report) in zip(level, _side_by_side(update, level), strict=True):
                operators[node.name], frames.outputs[node.name] = state, output
                self._rows_in[node.name] = report.rows_in
                reports.append(report)
        for step in self._captured():
            frames.outputs[step], report = run_capture(step, frames, setting)
            reports.append(report)
        return Manifest(
            self.app, epoch, "" if parent is None else parent.id, self.plan.version, self.generation,
            operators, dict(frames.outputs), offsets(self.store, epoch),
        )  # fmt: skip

    def _captured(self) -> list[str]:
        """The steps whose rows a sink takes straight from a source, without a keyed step in between."""
        graph = self.bound.graph
        return list(dict.fromkeys(s.parents[0] for s in graph.of(Sink) if graph.reads_sources(s.name)))

    def _publish(self, frames: EpochFrames, manifest: Manifest) -> None:
        for sink in self.bound.graph.of(Sink):
            faults.fire("publish.before", manifest.epoch)
            doing = f"publishing epoch {manifest.epoch}"
            try:
                sink.spec.publish(self._output(sink, frames, manifest))
            except StepFailed:
                raise
            except Exception as error:
                raise explain(error, sink.name, doing) from error

    def _output(self, sink: Sink, frames: EpochFrames, manifest: Manifest) -> CommittedOutput:
        step = sink.parents[0]
        node = self.bound.graph[step]
        schema = self.bound.schemas[step]
        key = self.bound.logics[step].layout.key.names if isinstance(node, Keyed) else schema.names
        final_only = sink.mode == FINAL_ONLY
        direct = None if final_only else manifest.outputs.get(step)

        def frame() -> DataFrame:
            rows = frames.committed(step)
            return rows.filter(FINAL) if final_only else rows

        return CommittedOutput(manifest.epoch, sink.name, tuple(key), schema, frame, direct, self.storage)

    def _report(
        self,
        manifest: Manifest,
        parent: Manifest | None,
        replayed: bool,
        frames: EpochFrames,
        reports: list[OperatorReport],
        watch: Stopwatch,
    ) -> EpochReport:
        seen = self.progress.measure(manifest, parent)
        entry = [r for r in reports if self.bound.graph.reads_sources(r.step) or not self.bound.graph[r.step].parents]
        return EpochReport(
            self.app,
            manifest.epoch,
            seen.now,
            self.plan.version,
            replayed,
            seen.rows_in if seen.rows_in is not None else max((r.rows_in for r in entry), default=0),
            sum(r.rows_out for r in reports if self._feeds_a_sink(r.step)),
            seen.lag_rows,
            seen.latency_s,
            frames.dead_letters() + sum(r.malformed_rows for r in reports),
            Phases(watch["plan"], watch["compute"], watch["commit"], watch["publish"], watch["collect"]),
            tuple(reports),
        )

    def _feeds_a_sink(self, step: str) -> bool:
        return any(isinstance(self.bound.graph[c], Sink) for c in self.bound.graph.consumers[step])


def _side_by_side(
    update: Callable[[Keyed], tuple[OperatorState, tuple[BlockRef, ...], OperatorReport]], level: tuple[Keyed, ...]
) -> list[tuple[OperatorState, tuple[BlockRef, ...], OperatorReport]]:
    if len(level) == 1:
        return [update(level[0])]
    with ThreadPoolExecutor(len(level)) as pool:
        return list(pool.map(update, level))

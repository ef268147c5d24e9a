"""Publishing an epoch: every sink gets its committed rows, as often as it takes."""

from pyspark.sql import DataFrame

from springtide import faults
from springtide.blocks.errors import TakenOver
from springtide.blocks.manifest import Manifest
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import FINAL_ONLY, Keyed, Sink
from springtide.engine.durability.history import History
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.epoch.sink_output import CommittedOutput
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.wire.job_errors import explain
from springtide.state.window import FINAL


class Publisher:
    """Hands epochs that are true to the sinks. Each sink knows the epoch, so one that comes again changes nothing."""

    def __init__(self, bound: BoundGraph, history: History, pool: ExecutorPool) -> None:
        self.bound, self.history, self.pool = bound, history, pool

    def __call__(self, frames: EpochDataFrames, manifest: Manifest) -> None:
        """Publish a committed epoch everywhere; StepFailed names the sink that could not take it."""
        for sink in self.bound.graph.of(Sink):
            faults.fire("publish.before", manifest.epoch)
            doing = f"publishing epoch {manifest.epoch}"
            try:
                with self.pool.watch.job(sink.name, doing):
                    sink.spec.publish(self._output(sink, frames, manifest))
            except (StepFailed, TakenOver):
                raise
            except Exception as error:
                raise explain(error, sink.name, doing) from error

    def _output(self, sink: Sink, frames: EpochDataFrames, manifest: Manifest) -> CommittedOutput:
        step = sink.parents[0]
        node = self.bound.graph[step]
        schema = self.bound.schemas[step]
        key = self.bound.logics[step].layout.key.names if isinstance(node, Keyed) else schema.names
        final_only = sink.mode == FINAL_ONLY
        direct = None if final_only else manifest.outputs.get(step)

        def frame() -> DataFrame:
            rows = frames.committed(step)
            return rows.filter(FINAL) if final_only else rows

        return CommittedOutput(
            manifest.epoch,
            sink.name,
            tuple(key),
            schema,
            frame,
            direct,
            self.pool.storage,
            self.history.lineage,
            self.history.generation,
        )

"""Who does the work of an app: this process alone, or workers."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from springtide.blocks.manifest import Manifest
from springtide.builder import Dataflow
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.python_check import check_elsewhere
from springtide.engine.lifecycle.config import RunConfig
from springtide.engine.pool.elastic import start_elastic
from springtide.engine.pool.embedded import EmbeddedPool
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.worker.task_context import Storage
from springtide.ids import PlanVersion, WorkerId
from springtide.plan.moves import SliceLoad
from springtide.plan.plan import even_plan

EMBEDDED = WorkerId("driver")


def start_pool(
    dataflow: Dataflow,
    bound: BoundGraph,
    spark: SparkSession,
    config: RunConfig,
    storage: Storage,
    watch: JobWatch,
    head: Manifest | None,
    heat: Callable[[], SliceLoad],
    on_start: Callable[[str], None],
) -> ExecutorPool:
    """As the config says; under a plan that comes after that of the last epoch."""
    version = PlanVersion(1 if head is None else head.plan + 1)
    if config.pool is not None:
        on_start(f"{config.pool.workers} workers")
        layouts = {step: logic.layout for step, logic in bound.logics.items()}
        return start_elastic(dataflow.name, spark, layouts, dataflow.slices, storage, config.pool, version, watch, heat)
    check_elsewhere(spark, 1)
    plan = even_plan(
        tuple(bound.logics),
        slices=dataflow.slices,
        instances=config.instances or min(spark.sparkContext.defaultParallelism, dataflow.slices),
        worker=EMBEDDED,
        version=version,
    )
    return EmbeddedPool(plan, storage, watch)

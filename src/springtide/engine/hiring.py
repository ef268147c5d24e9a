"""Who does the work of an app: this process alone, or workers."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from springtide.blocks.manifest import Manifest
from springtide.dataflow.builder import Dataflow
from springtide.engine.bound import BoundGraph
from springtide.engine.config import RunConfig
from springtide.engine.job_watch import JobWatch
from springtide.engine.staff import Alone, Staff
from springtide.engine.worker.task import Storage
from springtide.engine.worker_check import check_elsewhere
from springtide.engine.workforce import Workforce
from springtide.ids import PlanVersion, WorkerId
from springtide.plan.moves import Heat
from springtide.plan.plan import even_plan

EMBEDDED = WorkerId("driver")


def hire(
    dataflow: Dataflow,
    bound: BoundGraph,
    spark: SparkSession,
    config: RunConfig,
    storage: Storage,
    watch: JobWatch,
    head: Manifest | None,
    heat: Callable[[], Heat],
    on_start: Callable[[str], None],
) -> Staff:
    """As the config says; under a plan that comes after that of the last epoch."""
    version = PlanVersion(1 if head is None else head.plan + 1)
    if config.workforce is not None:
        on_start(f"{config.workforce.workers} workers")
        layouts = {step: logic.layout for step, logic in bound.logics.items()}
        return Workforce(
            dataflow.name, spark, layouts, dataflow.slices, storage, config.workforce, version, watch, heat
        )
    check_elsewhere(spark, 1)
    plan = even_plan(
        tuple(bound.logics),
        slices=dataflow.slices,
        instances=config.instances or min(spark.sparkContext.defaultParallelism, dataflow.slices),
        worker=EMBEDDED,
        version=version,
    )
    return Alone(plan, storage, watch)

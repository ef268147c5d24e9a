"""Who does the work of an app: this process alone, or workers."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.python_check import check_elsewhere
from springtide.engine.lifecycle.config import RunConfig
from springtide.engine.pool.elastic import start_elastic
from springtide.engine.pool.embedded import EmbeddedPool
from springtide.engine.pool.keyed_state import KeyedState
from springtide.engine.pool.protocol import ExecutorPool
from springtide.ids import WorkerId
from springtide.plan.moves import SliceLoad
from springtide.plan.plan import even_plan

EMBEDDED = WorkerId("driver")


def start_pool(
    spark: SparkSession, state: KeyedState, config: RunConfig, watch: JobWatch, heat: Callable[[], SliceLoad]
) -> ExecutorPool:
    """Several workers if the config wants a pool of them, else this process."""
    if config.pool is not None:
        return start_elastic(spark, state, config.pool, watch, heat)
    check_elsewhere(spark, 1)
    plan = even_plan(
        tuple(state.layouts),
        slices=state.slices,
        instances=config.instances or min(spark.sparkContext.defaultParallelism, state.slices),
        worker=EMBEDDED,
        version=state.version,
    )
    return EmbeddedPool(plan, state.storage, watch)

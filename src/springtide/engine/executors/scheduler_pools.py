"""Spark's scheduler pools: jobs that matter more get free slots first, copies get what is left.

`pools.xml` beside this file says how much more; Spark reads it when it starts with several workers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

COPIES = "springtide-copies"
"""The pool of jobs that must not hold up an epoch."""
HIGHEST = 10
"""Priorities above it share its pool; those below 1 are in the usual one."""
_PROPERTY = "spark.scheduler.pool"


def use(context: SparkContext, pool: str | None) -> None:
    """Jobs of this thread go to a pool from now on."""
    context.setLocalProperty(_PROPERTY, pool)  # type: ignore[arg-type]  # None takes it away


@contextmanager
def priority(context: SparkContext, level: int) -> Iterator[None]:
    """Jobs of this thread go to the pool of a priority meanwhile."""
    if level < 1:
        yield
        return
    use(context, f"springtide-priority-{min(level, HIGHEST)}")
    try:
        yield
    finally:
        use(context, None)

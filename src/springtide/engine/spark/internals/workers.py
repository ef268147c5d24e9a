"""The Python that workers run, and functions that reach them with their code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value
from pyspark.sql import SparkSession


def worker_python(spark: SparkSession) -> tuple[str, dict[str, str]]:
    """The Python that workers run, and the environment that Spark gives it on this machine."""
    context, jvm = spark.sparkContext, cast(Any, spark._jvm)
    paths = [jvm.PythonUtils.sparkPythonPath(), context.environment.get("PYTHONPATH"), jvm.System.getenv("PYTHONPATH")]
    settings = {**context.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return context.pythonExec, {**os.environ, **settings}


@contextmanager
def pickled_by_value(module: ModuleType) -> Iterator[None]:
    """Functions of a module go to workers with their code, so that workers need not have the module."""
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]

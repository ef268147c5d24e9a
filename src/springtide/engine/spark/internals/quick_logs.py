"""Spark's logs of a streaming query in a directory of this machine, written in a tenth of the time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from springtide.engine.spark.internals.java_classes import class_loader, compiled

QUICK_LOCAL_LOGS: Mapping[str, str] = {"spark.sql.streaming.checkpointFileManagerClass": "springtide.QuickLogs"}
"""A setting for queries that are started among `classes_of_logs`.

Spark's default forks some twenty processes for each file, and an epoch has three and more of them. It does so to refuse
a second writer at the same moment. Every driver of ours has a directory of its own for these logs, so there is none.
"""

_loaders: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


@contextmanager
def classes_of_logs(spark: SparkSession) -> Iterator[None]:
    """Spark finds the class of the setting: it looks with the class loader of the thread that starts a query."""
    context = spark.sparkContext
    if context not in _loaders:
        _loaders[context] = compiled(spark, "QuickLogs.java").getClassLoader()
    with class_loader(spark, _loaders[context]):
        yield

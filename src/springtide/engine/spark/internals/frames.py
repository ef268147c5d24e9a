"""DataFrames in one call of the JVM each, for what every epoch builds anew.

PySpark's own ways make a call for each column of the rows, and several for a function: with a few steps that is a
tenth of a second an epoch.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from springtide.engine.spark.internals.java_classes import compiled

Batches = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
LARGE = 1 << 20
"""Bytes of a pickled function from which on Spark broadcasts it."""

_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]
_makers: WeakKeyDictionary[SparkContext, dict[tuple[str, ...], Any]] = WeakKeyDictionary()
"""By Spark application, and by the files that its functions come with: the object in its JVM that makes DataFrames."""
_making = threading.Lock()


def map_in_arrow(rows: DataFrame, function: Batches, output: StructType) -> DataFrame:
    """What `rows.mapInArrow(function, output)` gives."""
    pickled = _pickler.dumps((function, output))
    if len(pickled) >= LARGE:
        return rows.mapInArrow(function, output)  # type: ignore[arg-type]
    name = getattr(function, "__name__", type(function).__name__)
    maker = maker_of(rows.sparkSession)
    return _frame(maker.mapInArrow(rows._jdf, bytearray(pickled), name, output.json()), rows)


def select(rows: DataFrame, expressions: Sequence[str]) -> DataFrame:
    """What `rows.selectExpr(*expressions)` gives."""
    return _frame(maker_of(rows.sparkSession).select(rows._jdf, "\0".join(expressions)), rows)


def by_number(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """What `rows.repartitionById(partitions, column)` gives."""
    return _frame(maker_of(rows.sparkSession).repartitionById(rows._jdf, partitions, column), rows)


def made_by(constructor: Any, like: DataFrame, parent: Any, *more: Any) -> DataFrame:
    """The rows of an RDD that a class of ours makes of another RDD, with the columns of a DataFrame like it.

    The constructor takes the parent and up to three arguments more.
    """
    first, second, third = (*more, None, None, None)[:3]
    return _frame(maker_of(like.sparkSession).made(constructor, like._jdf, parent, first, second, third), like)


def maker_of(spark: SparkSession) -> Any:
    """The object that makes DataFrames of a session; `Frames.java` says what it can do."""
    context = spark.sparkContext
    includes: Any = context._python_includes
    with _making:
        makers = _makers.setdefault(context, {})
        if tuple(includes) not in makers:
            jvm: Any = context._jvm
            like = jvm.SimplePythonFunction(
                bytearray(),
                context.environment,
                includes,
                context.pythonExec,
                context.pythonVer,
                [],
                context._javaAccumulator,
            )
            loaded = compiled(spark, "Frames.java").getClassLoader().loadClass("springtide.Frames")
            makers[tuple(includes)] = loaded.getConstructors()[0].newInstance(_array(context, like))
        return makers[tuple(includes)]


def _array(context: Any, *objects: Any) -> Any:
    array = context._gateway.new_array(context._jvm.java.lang.Object, len(objects))
    for place, each in enumerate(objects):
        array[place] = each
    return array


def _frame(made: Any, like: DataFrame) -> DataFrame:
    return DataFrame(made, like.sparkSession)

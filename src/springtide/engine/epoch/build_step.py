"""A stateless step's DataFrame, from those of its parents."""

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import MapBatches, Node, Transform, Union
from springtide.engine.spark.internals import map_in_arrow, spark_schema
from springtide.engine.worker.stateless import MapTable


def build(node: Node, parents: list[DataFrame]) -> DataFrame:
    """A stateless step's DataFrame from those of its parents; errors name the step."""
    try:
        if isinstance(node, Transform):
            frame = node.function(parents[0])
            if not isinstance(frame, DataFrame):
                raise TypeError(f"expected the function to return a DataFrame, got {type(frame).__name__}")
            return frame
        if isinstance(node, MapBatches):
            function = MapTable(node.name, node.function, node.output)
            return map_in_arrow(parents[0], function, spark_schema(node.output))
        if isinstance(node, Union):
            frame = parents[0]
            for other in parents[1:]:
                frame = frame.unionByName(other)
            return frame
        return parents[0]
    except StepFailed:
        raise
    except PySparkException as error:
        raise StepFailed(node.name, "building its DataFrame", first_lines(error)) from error
    except Exception as error:
        raise StepFailed(node.name, "building its DataFrame", f"{type(error).__name__}: {error}") from error


def first_lines(error: PySparkException) -> str:
    """What Spark says, without the frames of its JVM."""
    return str(error).split("\n\nJVM")[0].strip()

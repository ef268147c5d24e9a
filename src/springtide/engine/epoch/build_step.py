"""A stateless step's DataFrame, from those of its parents."""

from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import MapBatches, Node, Sides, Transform, Union
from springtide.engine.spark.internals import spark_schema
from springtide.engine.worker.stateless import MapTable
from springtide.state.sides import ROW, SIDE, side_column


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
            return parents[0].mapInArrow(function, spark_schema(node.output))
        if isinstance(node, Union):
            frame = parents[0]
            for other in parents[1:]:
                frame = frame.unionByName(other)
            return frame
        if isinstance(node, Sides):
            return _sided(node, parents)
        return parents[0]
    except StepFailed:
        raise
    except PySparkException as error:
        raise StepFailed(node.name, "building its DataFrame", first_lines(error)) from error
    except Exception as error:
        raise StepFailed(node.name, "building its DataFrame", f"{type(error).__name__}: {error}") from error


def _sided(node: Sides, parents: list[DataFrame]) -> DataFrame:
    """All rows, each with the first side's key, its side's number, and the columns of its own side."""
    frames, sides = [], [*zip(parents, node.keys, strict=True)]
    own = [_own(parent, key) for parent, key in sides]
    kinds = [
        _nullable(parent.select(columns).schema[0].dataType) for (parent, _), columns in zip(sides, own, strict=True)
    ]
    for side, (parent, key) in enumerate(sides):
        keys = [F.col(quoted(column)).alias(name) for column, name in zip(key, node.keys[0], strict=True)]
        others = [F.lit(None).cast(kind) for kind in kinds]
        columns = [own[side].cast(kinds[side]) if number == side else null for number, null in enumerate(others)]
        named = [column.alias(side_column(number)) for number, column in enumerate(columns)]
        frames.append(parent.select(*keys, F.lit(side).alias(SIDE), *named))
    return reduce(DataFrame.union, frames)


def _own(parent: DataFrame, key: tuple[str, ...]) -> Column:
    """A side's columns beside its key, as a struct; one that only says that there is a row, if there are none."""
    columns = [F.col(quoted(name)) for name in parent.columns if name not in key]
    return F.struct(*columns or [F.lit(True).alias(ROW)])


def _nullable(kind: DataType) -> DataType:
    """The same type with fields that may be null: those of a struct are where the struct is."""
    if not isinstance(kind, StructType):
        return kind
    return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind])


def quoted(name: str) -> str:
    """A column's name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"


def first_lines(error: PySparkException) -> str:
    """What Spark says, without the frames of its JVM."""
    return str(error).split("\n\nJVM")[0].strip()

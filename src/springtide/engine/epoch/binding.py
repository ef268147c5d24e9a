"""The graph bound to columns: each step's schema is known, and every mismatch found, before the first epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.dataflow.columns import bound, check_keyed, check_sides
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.dataflow.graph import Graph, Keyed, Sides, Sink, Source
from springtide.dataflow.source_spec import CORRUPT
from springtide.engine.epoch.build_step import build, first_lines
from springtide.engine.epoch.sides_together import Columns, columns_of, together
from springtide.engine.shedding.utility import worth
from springtide.engine.spark.internals import arrow_schema, spark_schema
from springtide.engine.worker.one_side import OWN
from springtide.engine.worker.parcel import INSTANCE
from springtide.engine.worker.prepare import HASH
from springtide.state.aggregates.estimate import is_estimated
from springtide.state.layout import Layout
from springtide.state.logic import Logic


@dataclass(frozen=True)
class BoundGraph:
    """A graph with the columns of every step, and the logic of every keyed one."""

    graph: Graph
    schemas: Mapping[str, pa.Schema]
    logics: Mapping[str, Logic]
    sides: Mapping[str, Columns] = field(default_factory=dict)
    """By way of several streams into a step: the columns of each."""

    @property
    def layouts(self) -> dict[str, Layout]:
        """By keyed step: how its state is laid out."""
        return {step: logic.layout for step, logic in self.logics.items()}

    def input_of(self, step: str) -> pa.Schema:
        """The columns a step with one parent gets."""
        return self.schemas[self.graph[step].parents[0]]

    def describe(self) -> dict[str, dict[str, Any]]:
        """By keyed step: what must not change between two starts."""
        return {
            node.name: {
                "kind": node.operation.kind,
                "operation": node.operation.describe(),
                **self.logics[node.name].layout.describe(),
            }
            for node in self.graph.of(Keyed)
        }


def bind(graph: Graph, spark: SparkSession, sources: Mapping[str, DataFrame], slices: int) -> BoundGraph:
    """Try every step on an empty DataFrame, and bind every keyed operation to its columns."""
    frames: dict[str, DataFrame] = {}
    schemas: dict[str, pa.Schema] = {}
    logics: dict[str, Logic] = {}
    sides: dict[str, Columns] = {}
    for node in graph:
        if isinstance(node, Source):
            empty = spark.createDataFrame([], sources[node.name].schema)
            frames[node.name] = empty.drop(CORRUPT)
            _check_utility(node, empty)
        elif isinstance(node, Keyed):
            _check_estimates(node, graph)
            logics[node.name] = _bind_keyed(node, schemas[node.parents[0]], slices)
            frames[node.name] = spark.createDataFrame([], spark_schema(logics[node.name].output))
        elif isinstance(node, Sides):
            check_sides(node, [schemas[parent] for parent in node.parents])
            parents = [frames[parent] for parent in node.parents]
            sides[node.name] = columns_of(node, [parent.schema for parent in parents])
            frames[node.name] = together(parents, sides[node.name])
        else:
            frames[node.name] = build(node, [frames[parent] for parent in node.parents])
        schemas[node.name] = arrow_schema(frames[node.name].schema)
        if isinstance(node, Sink):
            _check_sink(node, schemas[node.name])
    return BoundGraph(graph, schemas, logics, sides)


def _check_utility(node: Source, rows: DataFrame) -> None:
    if node.utility is not None:
        try:
            rows.selectExpr(worth(node.utility))
        except PySparkException as error:
            raise StepFailed(node.name, f"reading its utility {node.utility!r}", first_lines(error)) from error


def _check_estimates(node: Keyed, graph: Graph) -> None:
    """Estimates scale up rows that were kept by chance, and a utility leaves nothing to chance."""
    ranked = [p for p in sorted(graph.feeders[node.name]) if getattr(graph[p], "utility", None) is not None]
    estimated = [n for n, a in getattr(node.operation, "aggregates", {}).items() if is_estimated(a)]
    if ranked and estimated:
        expected = f"no estimate=True after source {ranked[0]!r}, which sheds by utility and not by chance"
        raise BadGraph(node.name, expected, f"estimates {estimated}")


def _check_sink(node: Sink, rows: pa.Schema) -> None:
    """A sink that goes by a column must get it."""
    for option, column in node.spec.columns:
        if column not in rows.names:
            raise BadGraph(node.name, f"a column of {rows.names} in {option}=", repr(column))


def _bind_keyed(node: Keyed, rows: pa.Schema, slices: int) -> Logic:
    reserved = [name for name in rows.names if name.lower() in (HASH, INSTANCE)]
    reserved += [name for name in node.key if name.lower().startswith(OWN)]
    if reserved:
        expected = f"no columns named {HASH!r} or {INSTANCE!r}, and no key named {OWN!r}, which are used on the way"
        raise BadGraph(node.name, expected, repr(reserved))
    check_keyed(node, rows)
    try:
        return bound(node, rows, slices)
    except BadGraph:
        raise
    except (TypeError, ValueError) as error:
        raise StepFailed(node.name, "checking its columns", str(error)) from error

"""Why a peer can't run some of the queries."""

from collections.abc import Mapping

_REVISED = "an aggregation without a window revises its results, and a second one would count each of them"
SPARK_LACKS: Mapping[str, str] = {
    "q4": _REVISED,
    "q6": "OVER some rows is refused on a stream (NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING)",
}
"""By query: what Spark's Structured Streaming lacks for it."""
FLINK_LACKS: Mapping[str, str] = {
    "q6": "OVER some rows wants the order of a time attribute, and rows that are never revised (FLINK-19059)",
}
"""By query: what Flink's SQL lacks for it."""

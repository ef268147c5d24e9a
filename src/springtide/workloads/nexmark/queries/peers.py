"""Why a peer can't run some of the queries."""

from collections.abc import Mapping

_REVISED = "an aggregation without a window revises its results, and a second one would count each of them"
SPARK_LACKS: Mapping[str, str] = {
    "q4": _REVISED,
    "q6": f"{_REVISED}; ranks over rows (OVER) do not stream either",
}
"""By query: what Spark's Structured Streaming lacks for it."""
FLINK_LACKS: Mapping[str, str] = {}
"""By query: what Flink's SQL lacks for it."""

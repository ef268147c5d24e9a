"""Why a peer can't run some of the queries."""

from collections.abc import Mapping

SPARK_LACKS: Mapping[str, str] = {}
"""By query: what Spark's Structured Streaming lacks for it."""
FLINK_LACKS: Mapping[str, str] = {}
"""By query: what Flink's SQL lacks for it."""

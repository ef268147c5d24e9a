"""The Spark session that all contestants of an experiment share."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from springtide.engine.session import SessionConfig, make_session


@contextmanager
def arena(name: str) -> Iterator[tuple[SparkSession, Path]]:
    """A session and a scratch directory; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"springtide-bench-{name}-") as scratch:
        spark = make_session(f"bench-{name}", SessionConfig(settings={"spark.driver.memory": "8g"}))
        try:
            yield spark, Path(scratch)
        finally:
            spark.stop()

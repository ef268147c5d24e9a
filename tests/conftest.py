"""Fixtures for all tests; Spark starts only if a test asks for it, and once for all of them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import hypothesis
import pytest

from springtide import App
from springtide.metrics.report import EpochReport
from springtide.testing import Server, postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes is the machine's business.
hypothesis.settings.register_profile("springtide", deadline=None)
hypothesis.settings.load_profile("springtide")
# For tests that wait for something, wherever they are.
sys.path.append(str(Path(__file__).parent / "chaos"))

RunApp = Callable[..., list[EpochReport]]


@pytest.hookimpl(tryfirst=True)  # xdist looks for groups in the same hook.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side: the tests of a file stay together, those with a broker share one, and the short ones come last."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group("kafka" if "kafka" in item.path.parts else item.path.name))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One embedded Spark with two cores, shared by all Spark tests."""
    from springtide.connectors.kafka.jars import JarsMissing, connector_settings
    from springtide.engine.spark.session import SessionConfig, make_session

    # Tests are short: compiling more than the quick compiler does would not pay.
    settings = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    with suppress(JarsMissing):  # Only the tests with Kafka need them, and say so.
        settings |= connector_settings(settings)
    session = make_session("springtide-tests", SessionConfig("local[2]", settings))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL, shared by all tests that need a database."""
    with postgres() as running:
        yield running


@pytest.fixture
def dsn(server: Server) -> str:
    """A database with a schema of the test's own."""
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.dsn}?options=-csearch_path%3D{name}"


@pytest.fixture
def run_app(spark: "SparkSession", tmp_path: Path) -> RunApp:
    """Run an app on the shared session until all that is available is done; returns its reports.

    Each run has a checkpoint of its own unless `checkpoint=` names one.
    """
    runs = count()

    def run(app: App, **options: Any) -> list[EpochReport]:
        place = tmp_path / f"run-{next(runs)}"
        defaults = {"checkpoint": str(place / "checkpoint"), "local": str(place / "local"), "until": "available"}
        return app.run(spark, **(defaults | options))

    return run

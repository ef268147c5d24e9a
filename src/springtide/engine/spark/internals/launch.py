"""Starts Spark's JVM, and guards the way back from it."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


def start_jvm(settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Start the JVM of this process with these settings on its command line; nothing if there is one.

    Settings that all may read go here; others are given to the session, which then does not start a JVM.
    """
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False)
        for name, value in settings.items():
            conf.set(name, value)
        with _set(environment):
            SparkContext._ensure_initialized(conf=conf)


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """The environment with these variables."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def own_name() -> str:
    """The name or address under which Spark's JVM would be found by others."""
    return str(cast(Any, SparkContext._jvm).org.apache.spark.util.Utils.localHostName())


def jvm_variable(name: str) -> str | None:
    """A variable of the environment that Spark's JVM was started in."""
    value = cast(Any, SparkContext._jvm).System.getenv(name)
    return None if value is None else str(value)


def guard_callbacks(spark: SparkSession) -> None:
    """Let only Spark's JVM call back into this process, for which PySpark opens a port without a token."""
    gateway: Any = spark.sparkContext._gateway
    parameters = gateway.callback_server_parameters
    if parameters.auth_token is None:
        parameters.auth_token = secrets.token_hex(32)
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    client = gateway.java_gateway_server.getCallbackClient()
    kind = client.getClass()
    while kind.getSimpleName() != "CallbackClient":
        kind = kind.getSuperclass()
    field = kind.getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, parameters.auth_token)

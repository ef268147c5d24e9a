"""Java files beside this one, compiled in the driver and sent to executors."""

import threading
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from springtide.scratch import make_scratch


def compiled(spark: SparkSession, source: str) -> Any:
    """A Java file beside this one, compiled in the driver by the compiler in Spark's own jars."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(source).read_text())
    return compiler


_shipped_classes: dict[tuple[str, str], Any] = {}
"""By Spark application and class: its constructor, as soon as executors can have it."""
_shipping = threading.Lock()


def shipped(spark: SparkSession, name: str) -> Any:
    """The constructor of a Java class beside this file, which tasks can use, too; compiled once a Spark application."""
    with _shipping:
        key = (spark.sparkContext.applicationId, name)
        if key not in _shipped_classes:
            compiler = compiled(spark, f"{name}.java")
            # Executors that come later fetch the jar from the driver, so it has to stay.
            jar = make_scratch("java") / f"{name}-{uuid.uuid4().hex}.jar"
            classes = compiler.getBytecodes()
            with zipfile.ZipFile(jar, "w") as archive:
                for found in classes:
                    archive.writestr(f"{found.replace('.', '/')}.class", bytes(classes[found]))
            spark.sparkContext._jsc.addJar(str(jar))
            loaded = compiler.getClassLoader().loadClass(f"springtide.{name}")
            _shipped_classes[key] = loaded.getConstructors()[0]
        return _shipped_classes[key]


@contextmanager
def class_loader(spark: SparkSession, loader: Any) -> Iterator[None]:
    """Give this thread another class loader for a while."""
    jvm: Any = spark._jvm
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(loader)
    try:
        yield
    finally:
        thread.setContextClassLoader(before)

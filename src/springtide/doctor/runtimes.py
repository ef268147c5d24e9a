"""Python, Java and Spark."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from springtide.doctor.finding import Finding, State
from springtide.java_home import MINIMUM_JAVA, JavaNotFound, find_java, java_major, run_java_version

OLDEST, NEWEST = (3, 11), (3, 13)
"""Of Python: what Springtide is tested with."""
SPARK = "4.3"
"""The release of PySpark that Springtide is made for, whatever its patch."""


def python(found: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """A Python that Springtide is tested with; newer ones may do."""
    told = f"{'.'.join(map(str, found))} in {sys.executable}"
    oldest, newest = (".".join(map(str, limit)) for limit in (OLDEST, NEWEST))
    if found[:2] < OLDEST:
        return Finding("Python", State.MISSING, told, f"install Python {oldest} to {newest}", needed=True)
    if found[:2] > NEWEST:
        return Finding("Python", State.WARNING, told, f"Springtide is tested with {oldest} to {newest}", needed=True)
    return Finding("Python", State.OK, told, needed=True)


def java() -> Finding:
    """A Java that Spark accepts, found as apps find it."""
    try:
        home = find_java()
        major = java_major(run_java_version(home / "bin" / "java"))
    except (JavaNotFound, OSError, subprocess.SubprocessError) as error:
        probes = "; ".join(f"{p.place}: {p.found}" for p in getattr(error, "probes", ())) or str(error)
        remedy = f"pip install 'springtide[java]', or install a JDK {MINIMUM_JAVA}+ and set JAVA_HOME to it"
        return Finding("Java", State.MISSING, probes, remedy, needed=True)
    return Finding("Java", State.OK, f"{major} in {home}", needed=True)


def spark(environment: Mapping[str, str] = os.environ) -> Finding:
    """PySpark of the right release, with jars of its own: `SPARK_HOME` would put those of another in their place."""
    install = f"pip install 'pyspark=={SPARK}.*'"
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("PySpark", State.MISSING, "not installed", install, needed=True)
    if found.split(".")[:2] != SPARK.split("."):
        return Finding("PySpark", State.MISSING, f"{found}, and Springtide is made for {SPARK}", install, needed=True)
    if home := environment.get("SPARK_HOME"):
        jars = _core(Path(home))
        if jars != found:
            told = f"{found}, but SPARK_HOME={home} has {f'Spark {jars}' if jars else 'no Spark'}"
            return Finding("PySpark", State.MISSING, told, "unset SPARK_HOME", needed=True)
    spec = find_spec("pyspark")
    place = Path(spec.origin).parent if spec and spec.origin else "?"
    return Finding("PySpark", State.OK, f"{found} in {place}", needed=True)


def springtide(found: str) -> Finding:
    """Which one this is: there may be several on a machine."""
    place = Path(__file__).parents[1]
    return Finding("Springtide", State.OK, f"{found} in {place}, on {platform.platform(terse=True)}", needed=True)


def _core(home: Path) -> str | None:
    """The version of the Spark in a directory, by the name of its core jar."""
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        if named := re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name):
            return named[1]
    return None

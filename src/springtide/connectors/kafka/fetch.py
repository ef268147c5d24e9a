"""Fetches the jars for Kafka with Ivy, which comes with Spark: Java and pip are enough.

What is there and whole is left alone; what comes is checked against the pinned checksums before it is put in place.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from springtide.connectors.kafka.jars import Jar, JarsMissing, Use, missing
from springtide.errors import SpringtideError
from springtide.java_home import find_java

USES: tuple[Use, ...] = ("connector", "broker")
TIMEOUT_S = 900.0
LOOK_S = 0.2
"""How often to look how far Ivy is."""
OnJar = Callable[[int], None]
"""Told how many of the wanted jars have come so far."""


class FetchFailed(SpringtideError, RuntimeError):
    """Ivy did not bring the jars, or there is no room for them."""


def fetch(use: Use, directory: Path, on_jar: OnJar = lambda _: None) -> int:
    """Bring the missing jars of one use into a directory, each whole or not at all; how many were missing."""
    wanted = missing(use, directory)
    if not wanted:
        return 0
    target = directory / use
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory) as scratch:
            _retrieve(wanted, Path(scratch), on_jar)
            if bad := tuple(jar.file for jar in wanted if not jar.good(Path(scratch))):
                raise JarsMissing(use, "what Ivy fetched", bad)
            for jar in wanted:
                shutil.move(Path(scratch) / jar.file, target / jar.file)
    except OSError as error:
        raise FetchFailed(f"could not write to {directory}: {error}. Name another place: --to DIR") from error
    return len(wanted)


def _retrieve(jars: tuple[Jar, ...], scratch: Path, on_jar: OnJar) -> None:
    """Let Ivy bring jars, without what they depend on: the list is complete as it is."""
    lines = [
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.revision}" transitive="false"/>'
        for jar in jars
    ]
    module, cache, said = scratch / "ivy.xml", scratch / "cache", scratch / "ivy.log"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="springtide" module="kafka"/>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )
    command = [
        str(find_java() / "bin" / "java"),
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(_ivy()),
        "-ivy",
        str(module),
        "-cache",
        str(cache),
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        str(scratch / "[artifact]-[revision].[ext]"),
        "-warn",
    ]
    with open(said, "wb") as log, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as ivy:
        try:
            _watch(ivy, cache, on_jar)
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode != 0:
        told = said.read_text(errors="replace").strip()[-2000:]
        raise FetchFailed(
            f"Ivy ended with {ivy.returncode}:\n{told}\n"
            "Is Maven Central (repo1.maven.org) within reach? Java takes a proxy from JAVA_TOOL_OPTIONS="
            "'-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'."
        )


def _watch(ivy: "subprocess.Popen[bytes]", cache: Path, on_jar: OnJar) -> None:
    """Wait for Ivy to end, and tell how many jars are in its cache meanwhile."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            ivy.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                raise FetchFailed(f"Ivy did not bring the jars within {TIMEOUT_S:.0f} s: try again") from None
        # A jar that is still coming ends in .part.
        on_jar(sum(1 for _ in cache.glob("*/*/*/*.jar")))
        if ivy.returncode is not None:
            return


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FetchFailed("expected PySpark, whose Ivy fetches the jars: run `pip install 'pyspark>=4.3,<4.4'`")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise FetchFailed(f"expected an ivy-*.jar among the jars of PySpark in {Path(spec.origin).parent}")
    return found[-1]

"""Fetches the jars for Kafka with Ivy, which comes with Spark: Java and pip are enough.

Run as `python -m springtide.engine.kafka.fetch`. What is there and whole is left alone.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from springtide.engine.java import find_java
from springtide.engine.kafka.jars import Jar, JarsMissing, Use, missing, pinned, place
from springtide.errors import SpringtideError

USES: tuple[Use, ...] = ("connector", "broker")
TIMEOUT_S = 900.0


class FetchFailed(SpringtideError, RuntimeError):
    """Ivy did not bring the jars."""


def main() -> int:
    """Fetch what is missing; 1 and a message if that fails."""
    directory = place()
    try:
        fetched = sum(fetch(use, directory) for use in USES)
    except (FetchFailed, JarsMissing) as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1
    print(f"kafka: {fetched} jars fetched, {sum(len(pinned(use)) for use in USES)} in {directory}")
    return 0


def fetch(use: Use, directory: Path) -> int:
    """Bring the missing jars of one use into a directory, each whole or not at all; how many were missing."""
    wanted = missing(use, directory)
    if not wanted:
        return 0
    print(f"kafka: fetching {len(wanted)} jars of the {use}", flush=True)
    target = directory / use
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory) as scratch:
        _retrieve(wanted, Path(scratch))
        if bad := tuple(jar.file for jar in wanted if not jar.good(Path(scratch))):
            raise JarsMissing(use, "what Ivy fetched", bad)
        for jar in wanted:
            shutil.move(Path(scratch) / jar.file, target / jar.file)
    return len(wanted)


def _retrieve(jars: tuple[Jar, ...], scratch: Path) -> None:
    """Let Ivy bring jars, without what they depend on: the list is complete as it is."""
    lines = [
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.revision}" transitive="false"/>'
        for jar in jars
    ]
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="springtide" module="kafka"/>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )
    command = [
        str(find_java() / "bin" / "java"), "-XX:TieredStopAtLevel=1", "-jar", str(_ivy()),
        "-ivy", str(module), "-cache", str(scratch / "cache"), "-types", "jar", "bundle",
        "-retrieve", str(scratch / "[artifact]-[revision].[ext]"), "-warn",
    ]  # fmt: skip
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise FetchFailed(f"Ivy ended with {done.returncode}:\n{(done.stdout + done.stderr).strip()[-2000:]}")


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FetchFailed("expected PySpark, whose Ivy fetches the jars: run `make setup`")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise FetchFailed(f"expected an ivy-*.jar among the jars of PySpark in {Path(spec.origin).parent}")
    return found[-1]


if __name__ == "__main__":
    sys.exit(main())

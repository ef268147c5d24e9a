"""The Python that Spark's workers run: what it has, and whether an app can run on it.

Spark takes it from `PYSPARK_PYTHON` when a context is made, else it is `python3`. In an environment that is not
activated that is another Python than the driver's, and the first task would fail far from the cause.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from springtide.engine.worker import python_report
from springtide.errors import SpringtideError

VARIABLE = "PYSPARK_PYTHON"
DEFAULT = "python3"
"""What Spark runs without the variable."""
PROBE_S = 60.0
"""How long a Python may take to answer."""


class UnfitPython(SpringtideError):
    """The Python of Spark's workers cannot run an app."""

    def __init__(self, python: str, fault: str, host: str = "") -> None:
        super().__init__(python, fault, host)
        self.python, self.fault, self.host = python, fault, host

    def __str__(self) -> str:
        where = f" on {self.host}" if self.host else ""
        fit = "a Python that has what it lacks, on every machine" if self.host else sys.executable
        return (
            f"Spark's workers{where} run {self.python}, which {self.fault}. "
            f"Set {VARIABLE} to {fit}, before the Spark session is made"
        )


@dataclass(frozen=True)
class WorkerPython:
    """What a Python says of itself."""

    executable: str
    version: str
    missing: tuple[str, ...]
    """Modules that a worker needs and this Python has not."""
    springtide: str
    """The version of Springtide that it would import; empty if there is none."""
    host: str = ""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "WorkerPython":
        """From what `python_report` tells."""
        return cls(told["executable"], told["version"], tuple(told["missing"]), told["springtide"], told["host"])

    def fault_for(self, driver: "WorkerPython") -> str | None:
        """Why it cannot work for a driver; None if it can."""
        if _minor(self.version) != _minor(driver.version):
            return f"is Python {self.version} where the driver's is {driver.version}: both need the same minor version"
        if self.missing:
            return f"has no {', '.join(self.missing)}"
        if self.springtide != driver.springtide:
            return f"has springtide {self.springtide} where the driver has {driver.springtide}"
        return None

    def check(self, *, elsewhere: bool = False) -> None:
        """Raise UnfitPython if it cannot work for this process; `elsewhere` names its host."""
        if (fault := self.fault_for(driver())) is not None:
            raise UnfitPython(self.executable, fault, self.host if elsewhere else "")


def driver() -> WorkerPython:
    """This process."""
    return WorkerPython.of(python_report.report())


def probe(python: str, environment: Mapping[str, str], directory: str | None = None) -> WorkerPython:
    """Ask a Python on this machine, by its path or its name on PATH; UnfitPython if it does not answer."""
    if shutil.which(python, path=environment.get("PATH")) is None:
        raise UnfitPython(python, "is not there, or cannot be run")
    source = Path(python_report.__file__).read_text()
    try:
        done = subprocess.run(
            [python, "-c", source],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnfitPython(python, f"does not run: {error}") from error
    try:
        return WorkerPython.of(json.loads(done.stdout))
    except (ValueError, KeyError) as error:
        said = ["nothing", *(done.stderr or done.stdout).strip().splitlines()][-1]
        raise UnfitPython(python, f"ended with {done.returncode} and said {said[:200]!r}") from error


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]

"""The Python that workers would run."""

import os
import shutil
import sys
from collections.abc import Mapping

from springtide.doctor.finding import Finding, State
from springtide.engine.executors.worker_python import DEFAULT, VARIABLE, UnfitPython, driver, probe


def made_sessions(environment: Mapping[str, str] = os.environ) -> Finding:
    """In sessions that Springtide makes: this one, unless a variable names another."""
    return _asked("workers' Python", environment.get(VARIABLE) or sys.executable, environment, State.MISSING)


def own_sessions(environment: Mapping[str, str] = os.environ) -> Finding:
    """In sessions that a user makes: what the variable names, else `python3`."""
    return _asked("own sessions", environment.get(VARIABLE) or DEFAULT, environment, State.WARNING)


def _asked(name: str, python: str, environment: Mapping[str, str], otherwise: State) -> Finding:
    needed = otherwise is State.MISSING
    remedy = f"export {VARIABLE}={sys.executable}"
    place = shutil.which(python, path=environment.get("PATH")) or python
    try:
        found = probe(python, environment)
    except UnfitPython as error:
        return Finding(name, otherwise, f"workers run {python}, which {error.fault}", remedy, needed)
    if (fault := found.fault_for(driver())) is not None:
        return Finding(name, otherwise, f"workers run {place}, which {fault}", remedy, needed)
    return Finding(name, State.OK, f"workers run {place}, Python {found.version}", needed=needed)

"""What some apps, benchmarks and tests take, and others do without."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from springtide.connectors.kafka.jars import Use, missing, pinned, place
from springtide.doctor.finding import Finding, State
from springtide.testing.database import NoServer, programs


def kafka_jars(use: Use, purpose: str, directory: Path | None = None) -> Finding:
    """All of them, whole: their checksums are looked at."""
    where = directory or place()
    absent, wanted = len(missing(use, where)), len(pinned(use))
    name = f"Kafka {use}"
    if not absent:
        return Finding(name, State.OK, f"{wanted} jars in {where}")
    return Finding(
        name, State.MISSING, f"{absent} of {wanted} jars not in {where}; for {purpose}", "springtide kafka fetch"
    )


def package(name: str, distribution: str, extra: str, purpose: str, module: str | None = None) -> Finding:
    """A Python package that an extra brings."""
    install = f"pip install 'springtide[{extra}]'"
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return Finding(name, State.MISSING, f"not installed; for {purpose}", install)
    if find_spec(module or distribution) is None:
        return Finding(name, State.MISSING, f"{found}, which has no module {module or distribution}", install)
    return Finding(name, State.OK, found)


def postgres_server() -> Finding:
    """The programs of a server that tests start and throw away."""
    try:
        return Finding("PostgreSQL server", State.OK, str(programs()))
    except NoServer:
        remedy = "install PostgreSQL 13+ (Debian, Ubuntu: apt install postgresql)"
        return Finding("PostgreSQL server", State.MISSING, "none; for tests with a database of their own", remedy)

"""The jars of Spark's Kafka connector and of a Kafka broker: which they are, where they lie, whether they are whole."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from springtide.errors import SpringtideError

Use = Literal["connector", "broker"]
PLACE = "SPRINGTIDE_KAFKA_JARS"
"""The environment variable that names the directory with the jars."""
JARS_SETTING = "spark.jars"
PACKAGES_SETTING = "spark.jars.packages"
HOW = "run `springtide kafka fetch`, which fetches it"


class JarsMissing(SpringtideError, RuntimeError):
    """Jars that Kafka needs are not there, or are not what they should be."""

    def __init__(self, use: str, place: str, missing: tuple[str, ...]) -> None:
        super().__init__(use, place, missing)
        self.use, self.place, self.missing = use, place, missing

    def __str__(self) -> str:
        names = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
        return f"expected Kafka's {self.use} in {self.place}, and found no good copy of {names}: {HOW}"


@dataclass(frozen=True)
class Jar:
    """One jar of one release, known by its content."""

    use: Use
    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.revision}.jar"

    def good(self, directory: Path) -> bool:
        """Whether it lies in a directory, whole."""
        path = directory / self.file
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


def pinned(use: Use) -> tuple[Jar, ...]:
    """The jars of one use, as `jars.txt` lists them.

    The connector's own release may be older than Spark's; `tests/kafka` runs it on the Spark that is installed.
    """
    found = []
    for line in Path(__file__).with_name("jars.txt").read_text().splitlines():
        what, coordinates, sha256 = line.split()
        if what == use:
            organisation, name, revision = coordinates.split(":")
            found.append(Jar(use, organisation, name, revision, sha256))
    return tuple(found)


def place(environment: Mapping[str, str] = os.environ, package: Path = Path(__file__).parents[2]) -> Path:
    """Where the jars are, or are to be: where `SPRINGTIDE_KAFKA_JARS` says, else in the checkout that the package is
    part of, else among the user's own data.
    """
    if named := environment.get(PLACE):
        return Path(named).expanduser()
    checkout = package.parents[1]
    if package.parent.name == "src" and (checkout / "pyproject.toml").is_file():
        return checkout / ".kafka"
    data = Path(environment.get("XDG_DATA_HOME", ""))
    # A path that is not absolute is to be ignored, as the standard says that names this variable.
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "springtide" / "kafka"


def missing(use: Use, directory: Path) -> tuple[Jar, ...]:
    """The jars that are not there, or are damaged."""
    return tuple(jar for jar in pinned(use) if not jar.good(directory / use))


def present(use: Use) -> tuple[Path, ...]:
    """The jars of one use; JarsMissing if one is not there. Looks at names only: fetching has checked the rest."""
    directory = place() / use
    paths = tuple(directory / jar.file for jar in pinned(use))
    if absent := tuple(path.name for path in paths if not path.is_file()):
        raise JarsMissing(use, str(directory), absent)
    return paths


def connector_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Spark settings that put the connector on the class path, beside the jars that the user's own settings name.

    A user who names the connector as a package gets it from there.
    """
    if "spark-sql-kafka" in settings.get(PACKAGES_SETTING, ""):
        return {}
    jars = [settings.get(JARS_SETTING, ""), *map(str, present("connector"))]
    return {JARS_SETTING: ",".join(filter(None, jars))}

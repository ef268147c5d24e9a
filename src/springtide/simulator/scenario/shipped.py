"""The scenarios that come with Springtide, and those of a user."""

from importlib.resources import files
from pathlib import Path

from springtide.simulator.scenario.fields import BadScenario
from springtide.simulator.scenario.read import read
from springtide.simulator.scenario.scenario import Scenario

DIRECTORY = files("springtide.simulator") / "scenarios"


def shipped() -> dict[str, str]:
    """By name: the title."""
    names = sorted(entry.name.removesuffix(".toml") for entry in DIRECTORY.iterdir() if entry.name.endswith(".toml"))
    return {name: find(name)[0].title for name in names}


def find(scenario: str) -> tuple[Scenario, ...]:
    """The scenarios in a file, or shipped under a name."""
    path = Path(scenario)
    if path.suffix != ".toml" and len(path.parts) == 1:
        entry = DIRECTORY / f"{scenario}.toml"
        if not entry.is_file():
            known = ", ".join(sorted(e.name.removesuffix(".toml") for e in DIRECTORY.iterdir()))
            raise BadScenario("the scenario", f"a path to a .toml file, or one of {known}", scenario)
        return read(entry.read_text(encoding="utf-8"), scenario)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadScenario("the scenario", "a TOML file that can be read", f"{scenario}: {wrong}") from None
    return read(text, path.stem)

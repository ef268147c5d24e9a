"""Builds the package as a release does, and an environment with nothing in it but a wheel and what it depends on."""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BUILD_S, COMMAND_S = 240.0, 180.0
OFFLINE = re.compile(r"connection|timed out|resolution|unreachable|no matching distribution", re.IGNORECASE)


class Builder:
    """The pinned build tools, in a directory of their own."""

    def __init__(self, tools: Path) -> None:
        self.tools = tools
        done = _run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--target",
                str(tools),
                "--constraint",
                str(PROJECT / "build-constraints.txt"),
                "hatchling",
            ],
            BUILD_S,
        )
        if done.returncode != 0 and OFFLINE.search(done.stderr):
            pytest.skip(f"the build tools cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr

    def build(self, kind: str, project: Path, out: Path) -> Path:
        """A `wheel` or an `sdist` of a project."""
        done = _run(
            [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)],
            BUILD_S,
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(self.tools)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        [built] = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
        return built


class Installed:
    """A wheel in a fresh environment, with links to what it depends on: what `pip install` of it would give."""

    def __init__(self, wheel: Path, root: Path) -> None:
        self.home, self.work = root / "home", root / "work"
        self.home.mkdir()
        self.work.mkdir()
        venv.create(root / "env", with_pip=False)
        self.bin = root / "env" / "bin"
        [self.packages] = (root / "env" / "lib").glob("python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        done = _run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], BUILD_S)
        assert done.returncode == 0, done.stderr
        for name in dependencies("springtide"):
            for part in top_level(distribution(name)):
                if not (self.packages / part.name).exists():
                    (self.packages / part.name).symlink_to(part)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command of the environment, away from the checkout, with an environment that is not activated."""
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR", "TZ")}
        kept |= {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "COLUMNS": "80", **environment}
        return _run([str(self.bin / command[0]), *command[1:]], COMMAND_S, cwd=self.work, env=kept)


def dependencies(name: str) -> set[str]:
    """What a distribution needs, directly or not, without extras; of what is for other systems, nothing."""
    found: set[str] = set()
    left = [name]
    while left:
        for requirement in distribution(left.pop()).requires or ():
            other = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()
            if "extra ==" not in requirement and other not in found and _installed(other):
                found.add(other)
                left.append(other)
    return found


def top_level(found: Distribution) -> Iterator[Path]:
    """The files and directories that it has put into site-packages."""
    root = Path(str(found.locate_file("")))
    for name in sorted({file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}):
        yield root / name


def _installed(name: str) -> bool:
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


def _run(
    command: list[str], timeout_s: float, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )

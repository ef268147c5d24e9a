"""Every command line in README and docs: springtide or make knows it, and a `sh` block runs as written.

A block is one story, told in one directory: an app that runs until Ctrl-C goes on in the background while the lines
after it are typed, and is stopped by SIGINT at the end. Stories with apps beyond the README's are slow tests.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from waiting import wait_until

from springtide.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(springtide [^`]+|make [a-z-]+)`")
SPRINGTIDE = [sys.executable, "-c", "from springtide.cli.entry import main; main()"]
PATIENCE_S = 150.0
MAY_WAIT = {"explain"}
"""Before the first decision there is nothing to explain."""
SLOW = re.compile(r"--kafka|bench |kafka fetch")


@dataclass(frozen=True)
class Block:
    """The lines of one fenced block that a person would type."""

    page: str
    number: int
    language: str
    lines: tuple[str, ...]

    @property
    def slow(self) -> bool:
        """All but the README's own, and short ones."""
        runs = any("springtide run" in line for line in self.lines)
        return any(SLOW.search(line) for line in self.lines) or (runs and self.page != "README.md")


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for number, (language, text) in enumerate(FENCE.findall(page.read_text())):
            lines = tuple(typed(line) for line in text.splitlines() if re.match(r"(springtide|make) ", line.strip()))
            if lines:
                yield Block(page.name, number, language, lines)


def typed(line: str) -> str:
    """A line without its comment."""
    return " ".join(shlex.split(line, comments=True)) if "'" not in line else line.partition("  #")[0].strip()


def inline() -> Iterator[str]:
    for page in PAGES:
        for found in INLINE.findall(FENCE.sub("", page.read_text())):
            if not re.search(r"[A-Z]{3,}\b|…|\.\.\.", found):  # APP and the like stand for something.
                yield found


COMMANDS = sorted({*inline(), *(line for block in blocks() for line in block.lines)})
STORIES = [
    pytest.param(block, id=f"{block.page}-{block.number}", marks=[pytest.mark.slow] if block.slow else [])
    for block in blocks()
    if block.language == "sh"
]


def test_there_is_something_to_read() -> None:
    assert len(COMMANDS) > 20
    assert len(STORIES) > 3


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.startswith("springtide ")])
def test_a_command_is_one_that_springtide_knows(line: str) -> None:
    command, arguments = typer.main.get_command(cli), shlex.split(line)[1:]
    context = command.make_context("springtide", arguments[:1], resilient_parsing=True)
    while hasattr(command, "commands") and arguments and not arguments[0].startswith("-"):
        found = command.get_command(context, arguments[0])
        assert found is not None, f"there is no {arguments[0]!r}"
        command, arguments = found, arguments[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    given = {argument.partition("=")[0] for argument in arguments if argument.startswith("-") and len(argument) > 1}
    assert given <= known | {"--help", "--version"}


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.startswith("make ")])
def test_a_target_is_one_that_make_knows(line: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line.split()[1] in targets


@pytest.mark.spark
@pytest.mark.parametrize("block", STORIES)
def test_a_story_runs_as_written(block: Block, tmp_path: Path) -> None:
    for name in ("examples", "books"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    with Terminal(tmp_path) as terminal:
        for line in block.lines:
            terminal.type(line)


class Terminal:
    """A directory in which commands are typed, one after the other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.running is None:
            return
        self.running.send_signal(signal.SIGINT)
        try:
            code = self.running.wait(PATIENCE_S)
        finally:
            self.running.kill()
        assert code == 0, self.log()

    def type(self, line: str) -> None:
        if line.startswith("make "):
            return  # Another test: a make target would set up everything anew.
        arguments = shlex.split(line)[1:]
        if arguments[0] == "run" and "--until" not in arguments:
            self.start(arguments)
        else:
            self.see_it_done(line, arguments)

    def start(self, arguments: list[str]) -> None:
        """An app that goes on, or several: the next line is typed when each has had an epoch."""
        log = (self.directory / "app.log").open("wb")
        self.running = subprocess.Popen([*SPRINGTIDE, *arguments], cwd=self.directory, stdout=log, stderr=log)
        epoch = re.compile(r"^([\w-]+: )?epoch \d+ ", re.MULTILINE)
        """Of several apps each says which it is."""
        apps = max(1, sum(".py" in argument for argument in arguments))
        wait_until("an epoch", lambda: len(set(epoch.findall(self.alive()))) >= apps, PATIENCE_S, self.log)

    def see_it_done(self, line: str, arguments: list[str]) -> None:
        """A command that ends with 0, with nothing cut; one that has nothing to tell yet may be typed again."""
        last = ""

        def done() -> bool:
            nonlocal last
            ended = subprocess.run(
                [*SPRINGTIDE, *arguments],
                cwd=self.directory,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                env={**os.environ, "COLUMNS": "80"},
            )
            last = f"{line}\n{ended.stdout}{ended.stderr}"
            assert "Traceback" not in last
            assert "…" not in ended.stdout, last
            assert ended.returncode == 0 or arguments[0] in MAY_WAIT, f"{last}\n{self.log()}"
            return ended.returncode == 0

        wait_until(line, done, PATIENCE_S, lambda: last)

    def alive(self) -> str:
        """What the app has printed; it has to run."""
        assert self.running is not None
        assert self.running.poll() is None, self.log()
        return self.log()

    def log(self) -> str:
        path = self.directory / "app.log"
        return path.read_text(errors="replace") if path.exists() else ""


TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_test_that_a_page_names_is_there(page: Path) -> None:
    for path, name in TEST.findall(page.read_text()):
        text = (ROOT / path).read_text()
        there = re.search(rf"^(?:(?:    )?def|class) {name}\b|^{name} = ", text, re.MULTILINE)
        assert there or not name, f"{path}::{name}"

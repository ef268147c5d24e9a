"""Every thread has a name, and docs/threads.md tells of all of them and of no other."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "springtide"
PAGE = ROOT / "docs" / "threads.md"
OWN = "springtide-"
"""How the name of a thread begins."""
APART = ("bench", "testing")
"""Rooms that do not belong to a running app; their threads are not listed."""
TERMINAL = "cli"
"""Its threads show something to people, and may go without a name."""
THREAD, TIMER, POOL = "threading.Thread", "threading.Timer", "concurrent.futures.ThreadPoolExecutor"
NAMED_BY = {THREAD: "name", POOL: "thread_name_prefix"}
STARTERS = {
    THREAD,
    TIMER,
    POOL,
    "concurrent.futures.thread.ThreadPoolExecutor",
    "_thread.start_new_thread",
    "asyncio.to_thread",
    "anyio.to_thread.run_sync",
    "starlette.concurrency.run_in_threadpool",
    "pyspark.InheritableThread",
    "multiprocessing.pool.ThreadPool",
}
NAMELESS: tuple[str, ...] = ()
"""Files with a `threading.Thread` that has no name: none has a reason for one."""
HELPERS = (
    "blocks/atomicity.py",  # A race of a moment, before anything runs.
    "control/api/routes.py",  # AnyIO names its worker threads by itself.
    "engine/epoch/compute.py",  # Parts of an epoch, which waits for them.
    "engine/executors/python_check.py",  # A timer takes no name.
    "engine/worker/update.py",  # Part of a task, in a worker's process.
)
"""Files whose pools and timers have no name, as their threads do not outlive the call that needs them."""


@dataclass(frozen=True)
class Start:
    """A place in the code where a thread comes from."""

    path: str
    line: int
    kind: str
    """The function or class, by its full name."""
    name: str
    """What the thread is called; empty if nothing is said."""
    daemon: bool

    @property
    def room(self) -> str:
        return self.path.partition("/")[0]


def starts(text: str, path: str) -> Iterator[Start]:
    """The places of one module, by calls and by classes that are threads themselves."""
    tree = ast.parse(text)
    known = dict(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (kind := full_name(node.func, known)) in STARTERS:
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            daemon = given.get("daemon")
            said = isinstance(daemon, ast.Constant) and daemon.value is True
            yield Start(path, node.lineno, kind, shown(given.get(NAMED_BY.get(kind, ""))), said)
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                if (kind := full_name(base, known)) in STARTERS:
                    yield Start(path, node.lineno, kind, "", daemon=False)


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """By the name that a module uses: what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def full_name(node: ast.expr, known: dict[str, str]) -> str:
    """What an expression such as `threading.Thread` stands for; empty if it is another kind of expression."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute) and (of := full_name(node.value, known)):
        return f"{of}.{node.attr}"
    return ""


def shown(name: ast.expr | None) -> str:
    """A name as it is written, with what is filled in between braces; empty if it is made in another way."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return name.value
    if isinstance(name, ast.JoinedStr):
        return "".join(
            f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else shown(part)
            for part in name.values
        )
    return ""


@cache
def all_starts() -> tuple[Start, ...]:
    """Of all modules but those apart."""
    modules = [(path, str(path.relative_to(SOURCE))) for path in sorted(SOURCE.rglob("*.py"))]
    found = [start for path, place in modules for start in starts(path.read_text(), place)]
    return tuple(start for start in found if start.room not in APART)


def table() -> list[tuple[str, str]]:
    """The first table of the page: by row, the thread and the file of its owner."""
    lines = PAGE.read_text().split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    header, _, *rows = cells
    assert header == ["thread", "owner", "what it does", "what it may touch", "how it ends"]
    assert all(len(row) == len(header) and all(row) for row in rows)
    return [(row[0].strip("`"), row[1].split("`")[1]) for row in rows]


def test_starts_are_found_however_they_are_written() -> None:
    text = """
import threading, concurrent.futures as f, threading as t
from threading import Thread as Strand, Timer
from concurrent.futures import ThreadPoolExecutor
threading.Thread(target=print, name="springtide-a", daemon=True).start()
t.Thread(target=print, name=f"springtide-{len('b')}-c")
Strand(target=print)
Timer(1.0, print)
f.ThreadPoolExecutor(1, thread_name_prefix="springtide-d")
with ThreadPoolExecutor(2) as pool:
    pool.submit(print)
class Story(threading.Thread): ...
jvm.java.lang.Thread.currentThread()
def join(thread: threading.Thread) -> None: ...
"""
    found = sorted(starts(text, "x/y.py"), key=lambda start: start.line)
    assert [(start.kind, start.name, start.daemon) for start in found] == [
        (THREAD, "springtide-a", True),
        (THREAD, "springtide-{len('b')}-c", False),
        (THREAD, "", False),
        (TIMER, "", False),
        (POOL, "springtide-d", False),
        (POOL, "", False),
        (THREAD, "", False),
    ]


def test_every_thread_has_a_name_and_does_not_keep_the_process() -> None:
    threads = [start for start in all_starts() if start.kind == THREAD and start.room != TERMINAL]
    assert len(threads) > 10
    named = [start for start in threads if start.path not in NAMELESS]
    assert [f"{start.path}:{start.line}" for start in named if not start.name.startswith(OWN)] == []
    assert [f"{start.path}:{start.line}" for start in threads if not start.daemon] == []


def test_the_page_names_every_thread_and_no_other() -> None:
    started = {(start.name, start.path) for start in all_starts() if start.name.startswith(OWN)}
    told = [(thread, path) for thread, path in table() if thread.startswith(OWN)]
    assert len(told) == len(set(told)), "a thread is told of once"
    assert set(told) == started


def test_the_page_tells_of_threads_without_a_name() -> None:
    nameless = {start.path for start in all_starts() if not start.name and start.room != TERMINAL}
    assert nameless == {*NAMELESS, *HELPERS}
    told = [(thread, path) for thread, path in table() if not thread.startswith(OWN)]
    assert sorted(told) == sorted(("none", path) for path in nameless)


def test_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`([\w/]+\.(?:py|java))`", PAGE.read_text())
    missing = [path for path in named if not (SOURCE / path).exists() and not (ROOT / path).exists()]
    assert missing == []


def test_names_in_the_code_that_the_page_uses_are_there() -> None:
    """`Class.member`: the member is in a module that has the class."""
    text = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    for owner, member in set(re.findall(r"`(_?[A-Z]\w+)\.(\w+)`", PAGE.read_text())):
        homes = [code for code in text.values() if re.search(rf"^class {owner}\b", code, re.MULTILINE)]
        assert any(re.search(rf"\b{member}\b", code) for code in homes), f"{owner}.{member}"

"""The walks in `docs/architecture.md` lead through functions that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STEPS = re.findall(r"^\d+\. `([\w/]+\.py):([\w.]+)`: ", (ROOT / "docs" / "architecture.md").read_text(), re.M)


def defined(tree: ast.Module) -> set[str]:
    """The functions and classes of a module, and `Class.method`."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_both_walks_are_there() -> None:
    assert len(STEPS) > 20


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_a_step_of_a_walk_exists(file: str, name: str) -> None:
    path = ROOT / "src" / "springtide" / file
    assert path.is_file()
    assert name in defined(ast.parse(path.read_text()))


def test_every_file_that_the_docs_name_exists() -> None:
    """A name such as `engine/epoch/runner.py`, relative to the package, to the project or to a room."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for name in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)\b", page.read_text()):
            assert (ROOT / name).exists() or (ROOT / "src" / "springtide" / name).exists(), f"{page.name}: {name}"

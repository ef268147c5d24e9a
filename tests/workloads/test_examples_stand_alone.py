"""Examples are for people with nothing but the package: they build on what it offers, not on its benchmarks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, anywhere in it; of `from a import b`, both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_example_imports_the_benchmarks(example: Path) -> None:
    assert not [name for name in imported(example) if f"{name}.".startswith("springtide.bench.")]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 10

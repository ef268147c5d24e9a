"""Rules of the house that a linter does not know."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[1] / "src" / "springtide").rglob("*.py"))
BROAD = {"Exception", "BaseException"}
LOGS = {"debug", "info", "warning", "error", "exception"}


def swallowed(tree: ast.AST) -> Iterator[int]:
    """Lines of handlers that catch everything, and neither raise, nor log, nor look at what they caught."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        broad = handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in BROAD)
        inside = [node for statement in handler.body for node in ast.walk(statement)]
        told = any(
            isinstance(node, ast.Raise)
            or (isinstance(node, ast.Name) and node.id == handler.name)
            or (isinstance(node, ast.Attribute) and node.attr in LOGS)
            for node in inside
        )
        if broad and not told:
            yield handler.lineno


def test_a_handler_that_swallows_is_found() -> None:
    tree = ast.parse("try:\n    1\nexcept Exception:\n    pass\ntry:\n    1\nexcept Exception as e:\n    print(e)")
    assert list(swallowed(tree)) == [3]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_no_exception_is_swallowed(path: Path) -> None:
    text = path.read_text()
    assert not list(swallowed(ast.parse(text)))
    assert "suppress(Exception)" not in text

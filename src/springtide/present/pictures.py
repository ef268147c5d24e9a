"""Pictures are an extra: what draws them may not be installed."""

from importlib.util import find_spec

NO_PICTURE = "no picture, as matplotlib is not installed: pip install 'springtide[bench]'"


def can_draw() -> bool:
    """Whether matplotlib is there; without it, a command prints `NO_PICTURE` and is otherwise the same."""
    return find_spec("matplotlib") is not None

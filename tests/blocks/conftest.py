"""Makes `blocks_kit` importable: with importlib mode pytest leaves sys.path alone."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from springtide.blocks import local


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test starts with nothing verified, as a new worker process does."""
    monkeypatch.setattr(local, "_verified", {})
    yield

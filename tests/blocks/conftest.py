"""Makes `blocks_kit` importable: with importlib mode pytest leaves sys.path alone."""

import sys
from pathlib import Path

import pytest

from springtide.blocks import local

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts with nothing verified, as a new worker process does."""
    monkeypatch.setattr(local, "_verified", {})

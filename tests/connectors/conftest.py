"""What tests of sinks share. With importlib mode pytest leaves sys.path alone, so kits are made importable here."""

import sys
from pathlib import Path

import pytest

from springtide import sinks
from springtide.connectors.sinks import Parquet

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def sink(out: Path) -> Parquet:
    return sinks.parquet(str(out))

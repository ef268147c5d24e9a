"""Makes `control_kit` importable, and serves a fake app."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from control_kit import FakeControls, Served

from springtide.control.api.server import ControlServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlServer]:
    server = ControlServer(FakeControls(), tmp_path_factory.mktemp("served"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def served(server: ControlServer) -> Served:
    """A fake app behind a real server; nothing has been done to it yet."""
    controls = server.controls
    assert isinstance(controls, FakeControls)
    vars(controls).update(vars(FakeControls()))
    return Served(server, controls)

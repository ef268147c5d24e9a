"""One S3 server for all tests that need no other; the modules beside the tests made importable."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

TESTS = Path(__file__).parents[1]
sys.path += [str(Path(__file__).parent), str(TESTS / "blocks"), str(TESTS / "engine")]

if TYPE_CHECKING:
    from s3_kit import S3


@pytest.fixture(scope="session")
def server_s3() -> "Iterator[S3]":
    """A server that takes every key."""
    from s3_kit import S3

    with S3() as running:
        yield running


@pytest.fixture
def s3(server_s3: "S3", monkeypatch: pytest.MonkeyPatch) -> "S3":
    """The server, where `s3://` leads in this test."""
    server_s3.use(monkeypatch)
    return server_s3

"""A broker for all tests that want one; the modules beside the tests, and the chaos tests' own, made importable."""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from springtide.testing.kafka import Broker
from springtide.testing.topics import create

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "chaos"), str(HERE.parent / "spark")]
_NUMBERS = count()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker, shared by all tests that do not hurt it."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new topic with two partitions."""
    return create(broker.servers, f"topic-{next(_NUMBERS)}", 2)

"""What tests of storage share. With importlib mode pytest leaves sys.path alone, so kits are made importable here."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from springtide.blocks import local
from springtide.blocks.claim import Claim, claim
from springtide.blocks.local import LocalBlocks
from springtide.blocks.store import LocalStore, Store

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts with nothing verified, as a new worker process does."""
    monkeypatch.setattr(local, "_verified", {})


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "checkpoint")


@pytest.fixture
def take(store: LocalStore) -> Iterator[Callable[..., Claim]]:
    """Claim and, at the end of the test, give back."""
    held: list[Claim] = []

    def call(where: Store = store, **options: Callable[..., object]) -> Claim:
        held.append(claim(where, **options))  # type: ignore[arg-type]
        return held[-1]

    yield call
    for one in held:
        one.release()


@pytest.fixture
def durable(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "durable")


@pytest.fixture
def blocks(tmp_path: Path, durable: LocalStore) -> LocalBlocks:
    return LocalBlocks(tmp_path / "worker", durable)

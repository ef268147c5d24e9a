"""A generation: a driver's own directory, with all that its predecessor had."""

from pathlib import Path

import pytest
from blocks_kit import next_manifest

from springtide.blocks.claim import Claim, claim
from springtide.blocks.durable import DurableLog, Replay
from springtide.blocks.errors import TakenOver
from springtide.blocks.generation import OPENED, current, open_generation
from springtide.blocks.log import ManifestLog
from springtide.blocks.store import LocalStore, Store
from springtide.ids import Epoch


class At:
    """A fence at a generation that nobody takes over."""

    def __init__(self, generation: int) -> None:
        self.generation = generation

    def check(self) -> None:
        """Nobody comes."""


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "checkpoint")


def fill(own: Store) -> None:
    """All that a driver may have."""
    first = next_manifest(None)
    ManifestLog(own).commit(first, None)
    ManifestLog(own).commit(next_manifest(first), first)
    DurableLog(own).commit(first)
    DurableLog(own).note(Replay(1, {Epoch(1): "v1\n{}\n1"}))
    own.put("shed/000000001.json", b"[]")
    own.put("torn/000000009.json", b"half a")
    own.put("spark/metadata", b'{"id":"lineage"}')
    for name in ("offsets/0", "offsets/1", "commits/0", "sources/0/0", "sources/1/9.compact"):
        own.put(f"spark/{name}", name.encode())


def files(store: Store, directory: str) -> dict[str, bytes]:
    root = Path(store.url, directory)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_new_checkpoint_has_a_first_generation_with_nothing_in_it(store: LocalStore) -> None:
    assert current(store).url == store.url
    own = open_generation(store, At(1))
    assert own.url == current(store).url == f"{store.url}/generations/000000001"
    assert list(files(own, "")) == [OPENED]


def test_a_successor_has_all_that_its_predecessor_had_and_a_late_one_does_not_reach_it(store: LocalStore) -> None:
    first = open_generation(store, At(1))
    fill(first)
    had = files(first, "")
    second = open_generation(store, At(4))
    del had[OPENED]
    found = files(second, "")
    del found[OPENED]
    assert found == had
    assert store.list("generations") == ["000000004"], "what nobody reads any more is gone"

    ManifestLog(first).reset(next_manifest(None))  # The first wakes up.
    first.put("spark/commits/1", b"late")
    first.put_if_absent(OPENED, b"{}")
    assert current(store).url == second.url
    found = files(second, "")
    del found[OPENED]
    assert found == had
    open_generation(store, At(5))
    assert store.list("generations") == ["000000005"]


def test_a_checkpoint_of_a_release_without_generations_is_taken_over(store: LocalStore) -> None:
    fill(store)
    store.put("app.json", b"{}")
    store.put("blocks/x", b"block")
    had = files(store, "")
    own = open_generation(store, At(3))
    kept = {"app.json": b"{}", "blocks/x": b"block"}
    found = files(own, "")
    del found[OPENED]
    assert found == {name: data for name, data in had.items() if name not in kept}
    assert sorted(path.name for path in store.root.iterdir()) == ["app.json", "blocks", "generations"]


def test_a_generation_that_was_not_opened_does_not_count(store: LocalStore) -> None:
    first = open_generation(store, At(1))
    fill(first)
    store.put("generations/000000002/manifests/000000007.json", b"copied in part")
    assert current(store).url == first.url
    third = open_generation(store, At(3))
    assert ManifestLog(third).epochs() == [0, 1]


class Vanishing:
    """A store in which the predecessor, which still runs, removes what was about to be copied."""

    def __init__(self, inner: LocalStore, times: int) -> None:
        self.inner, self.url, self.times = inner, inner.url, times

    def copy(self, name: str, to: str) -> None:
        if name.endswith("spark/commits/0") and self.times > 0:
            self.times -= 1
            raise FileNotFoundError(name)
        self.inner.copy(name, to)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def test_what_goes_while_it_is_copied_is_looked_for_anew(store: LocalStore) -> None:
    fill(open_generation(store, At(1)))
    own = open_generation(Vanishing(store, 3), At(2))  # type: ignore[arg-type]
    assert own.list("spark/commits") == ["0"]
    with pytest.raises(FileNotFoundError):
        open_generation(Vanishing(store, 1000), At(3))  # type: ignore[arg-type]


def test_who_was_taken_over_while_it_copied_removes_nothing(store: LocalStore) -> None:
    fill(open_generation(store, At(1)))
    late: Claim = claim(store)
    try:
        store.put("drivers/000000002.json", late._holder.encode())
        second = open_generation(store, At(2))
        had = files(second, "")
        with pytest.raises(TakenOver):
            open_generation(store, late)
        assert files(second, "") == had
        assert current(store).url == second.url
    finally:
        late.release()

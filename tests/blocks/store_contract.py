"""The contract of a durable store: one test class, run against every implementation."""

from typing import Any

import pyarrow as pa
import pytest

from springtide.blocks.errors import AlreadyThere
from springtide.blocks.store import Store, put_own


class Contract:
    """What the engine relies on, whatever the store."""

    @pytest.mark.parametrize("data", [b"", b"bytes", bytearray(b"array"), memoryview(b"view"), pa.py_buffer(b"arrow")])
    @pytest.mark.parametrize("call", ["put", "put_if_absent"])
    def test_what_was_put_is_there_byte_by_byte(self, store: Store, data: Any, call: str) -> None:
        getattr(store, call)("blocks/a.arrow", data)
        assert store.get("blocks/a.arrow") == bytes(data)

    def test_a_put_overwrites(self, store: Store) -> None:
        store.put("a/b", b"a long first version")
        store.put("a/b", b"second")
        assert store.get("a/b") == b"second"

    def test_put_if_absent_refuses_a_taken_name_and_changes_nothing(self, store: Store) -> None:
        store.put_if_absent("manifests/1", b"first")
        with pytest.raises(AlreadyThere, match=r"'manifests/1' exists already") as caught:
            store.put_if_absent("manifests/1", b"other")
        assert caught.value.path == "manifests/1"
        assert store.get("manifests/1") == b"first"
        store.put("b", b"")
        with pytest.raises(AlreadyThere):
            store.put_if_absent("b", b"even an empty one is there")

    def test_a_deleted_name_is_free_again(self, store: Store) -> None:
        store.put_if_absent("a", b"1")
        store.delete(["a"])
        store.put_if_absent("a", b"2")
        assert store.get("a") == b"2"

    def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        with pytest.raises(FileNotFoundError):
            store.get("nothing")
        store.put("directory/name", b"")
        with pytest.raises(FileNotFoundError):
            store.get("directory/other")

    def test_a_listing_is_sorted_and_holds_names_directly_under_the_directory(self, store: Store) -> None:
        for name in ("m/2.json", "m/10.json", "m/1.json", "mm/3.json", "top"):
            store.put(name, b"x")
        assert store.list("m") == ["1.json", "10.json", "2.json"]
        store.delete(["m/1.json"])
        store.put_if_absent("m/4.json", b"x")
        assert store.list("m") == ["10.json", "2.json", "4.json"], "a listing is never stale"

    def test_a_directory_that_does_not_exist_is_empty(self, store: Store) -> None:
        assert store.list("nowhere") == []
        store.tidy("nowhere")

    def test_deleting_takes_any_iterable_and_does_not_mind_what_is_gone(self, store: Store) -> None:
        store.put("a/1", b"")
        store.put("a/2", b"")
        store.delete(f"a/{n}" for n in (0, 1, 1, 3))
        assert store.list("a") == ["2"]
        store.delete([])

    def test_tidying_leaves_what_was_put(self, store: Store) -> None:
        store.put("a/1", b"1")
        store.tidy("a")
        assert store.get("a/1") == b"1"

    def test_who_tries_again_finds_its_own_and_another_finds_the_name_taken(self, store: Store) -> None:
        put_own(store, "drivers/1", b"mine")
        put_own(store, "drivers/1", b"mine")
        with pytest.raises(AlreadyThere):
            put_own(store, "drivers/1", b"yours")
        assert store.get("drivers/1") == b"mine"

    def test_a_copy_stays_when_the_first_goes(self, store: Store) -> None:
        store.put("a/1", b"1")
        store.put("b/1", b"old")
        store.copy("a/1", "b/1")
        store.delete(["a/1"])
        assert store.get("b/1") == b"1"
        with pytest.raises(FileNotFoundError):
            store.copy("a/1", "b/2")
        assert store.list("b") == ["1"]

    def test_a_directory_goes_with_all_that_is_in_it_and_nothing_else(self, store: Store) -> None:
        for name in ("g/1/a", "g/1/spark/offsets/0", "g/10/a"):
            store.put(name, b"x")
        store.remove("g/1")
        store.remove("nowhere")
        assert store.list("g") == ["10"]
        assert store.list("g/1") == store.list("g/1/spark/offsets") == []

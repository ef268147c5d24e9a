"""A part of a store that is a store itself."""

from collections.abc import Iterable

from springtide.blocks.store import Data, Store


class Within:
    """The names under a directory of another store."""

    def __init__(self, store: Store, directory: str) -> None:
        self.store, self.directory = store, directory
        self.url = f"{store.url}/{directory}"

    def put(self, name: str, data: Data) -> None:
        self.store.put(self._at(name), data)

    def put_if_absent(self, name: str, data: Data) -> None:
        self.store.put_if_absent(self._at(name), data)

    def copy(self, name: str, to: str) -> None:
        self.store.copy(self._at(name), self._at(to))

    def get(self, name: str) -> bytes:
        return self.store.get(self._at(name))

    def list(self, prefix: str) -> list[str]:
        return self.store.list(self._at(prefix))

    def delete(self, names: Iterable[str]) -> None:
        self.store.delete(map(self._at, names))

    def remove(self, directory: str) -> None:
        self.store.remove(self._at(directory))

    def tidy(self, prefix: str) -> None:
        self.store.tidy(self._at(prefix))

    def _at(self, name: str) -> str:
        return f"{self.directory}/{name}".rstrip("/")

"""A store that is away for a moment, at any of the things that a driver writes: the app waits, and goes on."""

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chaos_kit import Site

from springtide.blocks.store import LocalStore
from springtide.engine.lifecycle import running

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 2


class Hiccups(LocalStore):
    """Fails the first call of each kind for each directory, once the app has claimed it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.failed: set[tuple[str, str]] = set()

    def _fail_once(self, call: str, name: str) -> None:
        parts = [part for part in name.split("/")[:-1] if not part.isdigit()]
        what = (call, "/".join(parts) or name)
        if "drivers" not in parts and (self.root / "drivers").exists() and what not in self.failed:
            self.failed.add(what)
            raise OSError(errno.EIO, "away for a moment")

    def put(self, name: str, data: Any) -> None:
        self._fail_once("put", name)
        super().put(name, data)

    def put_if_absent(self, name: str, data: Any) -> None:
        self._fail_once("put", name)
        super().put_if_absent(name, data)

    def get(self, name: str) -> bytes:
        self._fail_once("get", name)
        return super().get(name)

    def delete(self, names: "Iterable[str]") -> None:
        some = list(names)
        for name in some[:1]:
            self._fail_once("delete", name)
        super().delete(some)


def test_whatever_is_written_while_an_app_runs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Hiccups] = []

    def open_store(url: str) -> Hiccups:
        opened.append(Hiccups(Path(url)))
        return opened[-1]

    monkeypatch.setattr(running, "open_store", open_store)
    site.run(EPOCHS)
    site.check(EPOCHS)
    (store,) = opened
    failed = {what for call, what in store.failed if call == "put"}
    assert {"app.json", "reports", "generations/manifests"} <= failed, "each was tried again"

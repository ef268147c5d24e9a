"""URLs whose fsspec driver is not installed: the error names the package."""

import sys
from importlib import import_module
from pathlib import Path

import fsspec
import pytest

from springtide.blocks.drivers import NoDriver, file_system
from springtide.blocks.store import LocalStore, open_store
from springtide.confidential import hide


@pytest.mark.parametrize(("url", "package"), [("s3://b/x", "s3fs"), ("s3a://b/x", "s3fs"), ("gs://b", "gcsfs")])
def test_the_package_to_install_is_named(url: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    loaded = import_module("fsspec.registry")._registry  # Drivers that were loaded before.
    monkeypatch.delitem(loaded, url.partition(":")[0], raising=False)
    with pytest.raises(NoDriver, match=rf"'{url}' cannot be opened: .*pip install {package}, here and on every worker"):
        open_store(url)


def test_a_driver_of_fsspecs_own_that_lacks_something_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(url: str, **options: object) -> None:
        raise ImportError('SFTPFileSystem requires "paramiko" to be installed')

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    with pytest.raises(NoDriver, match='requires "paramiko" to be installed'):
        open_store("sftp://host/x")


def test_a_protocol_that_nobody_knows() -> None:
    with pytest.raises(NoDriver, match=r"Protocol not known: tide\. Expected a path, or a URL"):
        open_store("tide://bucket/x")


def test_a_file_system_keeps_no_listings_and_its_secret_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(import_module("fsspec.config").conf, "memory", {"secret": "ebb-and-flow-9", "token": None})
    found, _ = file_system("memory://place")
    assert not found.dircache.use_listings_cache
    assert hide("ebb-and-flow-9, None") == "…, None"


def test_a_path_needs_no_driver(tmp_path: Path) -> None:
    assert file_system(str(tmp_path))[1] == str(tmp_path)
    assert isinstance(open_store(str(tmp_path)), LocalStore)

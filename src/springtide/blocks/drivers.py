"""The fsspec driver of a URL: there, or named with how to install it."""

from typing import Any

import fsspec
from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

from springtide.confidential import hide, masked_url, remember_settings, remember_url
from springtide.errors import SpringtideError


class NoDriver(SpringtideError):
    """No installed package can open a URL."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url, self.reason = url, reason

    def __str__(self) -> str:
        return f"{masked_url(self.url)!r} cannot be opened: {hide(self.reason)}"


def file_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of a path or URL, and the path in it; NoDriver if its package is not installed.

    It keeps no listings: one that another thread began before a write would be shown to who looks after it.
    """
    remember_url(url)
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise NoDriver(url, f"{_missing(get_protocol(url), error)}, here and on every worker") from error
    except ValueError as error:
        # For protocols that neither fsspec nor an installed package knows, and for URLs that make no sense.
        raise NoDriver(
            url, f"{error}. Expected a path, or a URL that an installed fsspec driver knows, such as s3:// with s3fs"
        ) from error
    remember_settings({name: value for name, value in found[0].storage_options.items() if isinstance(value, str)})
    return found


def _missing(protocol: str, error: ImportError) -> str:
    """What to install. A driver that is not fsspec's own is a package that goes by the name of its first module."""
    package = str(known_implementations.get(protocol, {}).get("class", "")).partition(".")[0]
    if package in ("", "fsspec"):
        return f"its fsspec driver lacks a package ({error}): install it"
    return f"its fsspec driver {package} is not installed: pip install {package}"

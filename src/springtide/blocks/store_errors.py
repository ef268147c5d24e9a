"""What goes wrong in a store, in one language: drivers have errors of their own, and many are no OSError.

An error becomes StoreFailed at the edge, in `translated`. It says whether waiting may mend it: a store that is away,
slow or busy comes back; one that refuses, is full, or does not exist does not.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from springtide.blocks.errors import AlreadyThere, StoreFailed
from springtide.confidential import hide

FINAL = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EISDIR,
        errno.ENAMETOOLONG,
    }
)  # fmt: skip
"""What the operating system says and waiting does not mend. A directory that is something else now may come back."""
BUSY = frozenset({408, 409, 423, 425, 429})
"""What a server says to one who asks at a bad moment; its other answers from 400 to 499 are refusals."""
FINAL_NAMES = frozenset({"NoCredentialsError", "PartialCredentialsError", "InvalidRegionError", "UnknownServiceError"})
"""Errors of drivers that come before any server is asked."""
OURS = (AssertionError, TypeError, AttributeError, NameError, NotImplementedError, MemoryError)
"""Faults of a program, which are not the store's."""


@contextmanager
def translated(action: str, name: str) -> Iterator[None]:
    """Whatever a driver raises within comes out as StoreFailed; answers stay: not found, and already there."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, StoreFailed, *OURS):
        raise
    except Exception as error:
        raise failed(action, name, error) from error


def failed(action: str, name: str, error: Exception) -> StoreFailed:
    """A driver's error as the store's."""
    return StoreFailed(action, name, hide(str(error)) or type(error).__name__, final=not may_mend(error))


def may_mend(error: BaseException) -> bool:
    """Whether it may be over after a while."""
    if isinstance(error, StoreFailed):
        return not error.final
    if isinstance(error, AlreadyThere | FileNotFoundError | PermissionError):
        return False
    status = _status(error)
    if status is not None:
        return not 400 <= status < 500 or status in BUSY
    return getattr(error, "errno", None) not in FINAL and type(error).__name__ not in FINAL_NAMES


def _status(error: BaseException) -> int | None:
    """What the server answered, wherever a driver keeps it; None if nothing is known."""
    response = getattr(error, "response", None)
    told = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    for found in (told, *(getattr(error, name, None) for name in ("status", "status_code", "code"))):
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None

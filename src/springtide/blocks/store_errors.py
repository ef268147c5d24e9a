"""What goes wrong in a store, in one language: drivers have errors of their own, and many are no OSError.

An error becomes StoreFailed at the edge, in `translated`. It says whether waiting may mend it: a store that is away,
slow or busy comes back; one that refuses, is full, or does not exist does not.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from springtide.blocks.errors import REPAIR, AlreadyThere, StoreFailed
from springtide.confidential import hide

FINAL = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EFBIG,
        errno.EACCES,
        errno.EPERM,
        errno.ENOENT,
        errno.EISDIR,
        errno.ENAMETOOLONG,
    }
)
"""What the operating system says and waiting does not mend. A directory that is something else now may come back."""
BUSY = frozenset({408, 409, 423, 425, 429})
"""What a server says to one who asks at a bad moment; its other answers from 300 to 499 are refusals."""
NOT_IMPLEMENTED = 501
TAKEN = 412
"""What a server says to put-if-absent if the name is taken: the condition, and we make no other, does not hold."""
NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError"})
FINAL_NAMES = NO_CREDENTIALS | {"InvalidRegionError", "UnknownServiceError"}
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
        if _status(error) == TAKEN:
            raise FileExistsError(errno.EEXIST, "the name is taken", name) from error
        raise failed(action, name, error) from error


def failed(action: str, name: str, error: Exception) -> StoreFailed:
    """A driver's error as the store's."""
    reason = hide(str(error)) or type(error).__name__
    return StoreFailed(action, name, reason, final=not may_mend(error), remedy=_remedy(error))


def may_mend(error: BaseException) -> bool:
    """Whether it may be over after a while."""
    if isinstance(error, StoreFailed):
        return not error.final
    if isinstance(error, AlreadyThere | FileNotFoundError | PermissionError):
        return False
    if isinstance(error, TimeoutError):
        return True  # S3 says 400 to one whose bytes come too slowly.
    status = _status(error)
    if status is not None:
        return status in BUSY or not (300 <= status < 500 or status == NOT_IMPLEMENTED)
    return getattr(error, "errno", None) not in FINAL and type(error).__name__ not in FINAL_NAMES


def _remedy(error: Exception) -> str:
    """What to do."""
    if isinstance(error, PermissionError) or _status(error) in (401, 403) or type(error).__name__ in NO_CREDENTIALS:
        return "Check its credentials and what they allow"
    if isinstance(error, FileNotFoundError):
        return "Create the place, or name another one"
    return REPAIR


def _status(error: BaseException) -> int | None:
    """What the server answered, wherever a driver keeps it: also in what its error was made of. None if unknown."""
    found = _own_status(error)
    return found if found is not None or error.__cause__ is None else _status(error.__cause__)


def _own_status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    told = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    for found in (told, *(getattr(error, name, None) for name in ("status", "status_code", "code"))):
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None

"""What lay in a worker's directory before a driver's first task came there.

Only that may be cleared as left by others: a driver's own blocks come while its first epoch still runs, and some of
them, such as replicas, bear the numbers of older epochs.
"""

import os
import uuid
from pathlib import Path

from springtide.blocks.block import epoch_of
from springtide.private import make_private

_MARK = ".before."


def note_earlier(directory: Path, driver: str) -> None:
    """Note the blocks that are there, unless that is done; before a task of this driver writes any.

    Tasks of several processes may come at once. The note appears whole, and the first one counts: whoever has seen one
    may write, so no list made before the first note has a block of this driver.
    """
    mark = directory / (_MARK + driver)
    if mark.exists():
        return
    make_private(directory)
    found = os.listdir(directory)
    temporary = directory / f".{uuid.uuid4().hex}.tmp"
    try:
        temporary.write_text("\n".join(name for name in found if epoch_of(name) is not None))
        os.link(temporary, mark)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)
    for name in found:
        if name.startswith(_MARK) and name < mark.name:
            (directory / name).unlink(missing_ok=True)


def earlier(directory: Path, driver: str) -> list[str]:
    """The blocks that were there before this driver; none if it has noted nothing."""
    try:
        return (directory / (_MARK + driver)).read_text().splitlines()
    except FileNotFoundError:
        return []


def driver_name(generation: int) -> str:
    """A name for a driver that no other has, on no checkpoint; names sort by generation."""
    return f"{generation:09d}.{uuid.uuid4().hex}"

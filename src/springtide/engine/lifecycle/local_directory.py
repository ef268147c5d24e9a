"""Where the blocks of one app lie in a workers' directory that several apps may be given."""

import hashlib
from pathlib import Path

from springtide.ids import valid_name

DIGITS = 12


def blocks_directory(local: str, app: str, checkpoint: str) -> str:
    """A directory for one app on one checkpoint, below `local`.

    A driver that starts removes what no manifest of its own checkpoint needs, so no other app's blocks may lie there.
    The name is made of what is known before anything is written, and is the same each time: the next driver finds what
    the last one left.
    """
    identity = hashlib.sha256(f"{app}\n{checkpoint}".encode()).hexdigest()[:DIGITS]
    return str(Path(local, f"{valid_name('app', app)}-{identity}"))

"""Directories that only their owner can look into."""

import os
from pathlib import Path

OWNER_ONLY = 0o700


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for its owner alone; one that is there keeps its mode."""
    try:
        os.mkdir(directory, OWNER_ONLY)
    except FileNotFoundError:
        make_private(directory.parent)
        make_private(directory)
    except FileExistsError:
        if not directory.is_dir():
            raise

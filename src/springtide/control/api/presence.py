"""Tells other processes that an app is here while it has no control API: it starts, or it runs embedded."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from springtide.control.api.owner_file import process_lives, remove_owner_file, write_owner_file
from springtide.ids import NAME
from springtide.logs import room_logger

FILE = "presence.json"
RUNNING = "running"
"""The stage of an app that has started."""

log = room_logger(__name__)


@dataclass(frozen=True)
class Presence:
    """An app of a living process, and how far it has come."""

    app: str
    pid: int
    since: float
    """When its start began, in seconds since 1970."""
    stage: str
    """The part of the start it is at, such as `Spark`, or `running`."""

    @property
    def starting(self) -> bool:
        """Whether it does not run yet."""
        return self.stage != RUNNING

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, directory: Path) -> "Presence | None":
        """Who is here; None if nobody lives who says so."""
        try:
            fields = json.loads((directory / FILE).read_bytes())
            found = cls(str(fields["app"]), int(fields["pid"]), float(fields["since"]), str(fields["stage"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if NAME.fullmatch(found.app) and found.pid > 0 and process_lives(found.pid) else None


class Announced:
    """Keeps an app's presence in a directory up to date, as far as that can be written."""

    def __init__(self, app: str, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._app, self._directory, self._since = app, directory.absolute(), clock()
        self._last: Presence | None = None

    def __call__(self, stage: str) -> None:
        """The app has come to this stage."""
        other = Presence.read(self._directory)
        if other is not None and other.pid != os.getpid():
            return  # It was here first; whether this app may run as well is for its claim to say.
        self._last = Presence(self._app, os.getpid(), self._since, stage)
        try:
            write_owner_file(self._directory / FILE, self._last.encode())
        except OSError as error:
            log.info("other processes will not see that %s is at %s: %s", self._app, stage, error)

    def end(self) -> None:
        """The app has ended, or never came to run; a directory that holds nothing else goes, too."""
        if self._last is None:
            return
        remove_owner_file(self._directory / FILE, self._last.encode())
        try:
            self._directory.rmdir()
        except OSError:
            return  # The app has left something there, as almost every app does.

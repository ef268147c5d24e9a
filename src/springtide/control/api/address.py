"""Where a running app can be reached: a file that only its owner can read."""

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from springtide.control.api.owner_file import process_lives, remove_owner_file, write_owner_file
from springtide.control.api.presence import Presence
from springtide.errors import BadValue, SpringtideError
from springtide.ids import NAME

FILE = "control.json"

_URL = re.compile(r"http://127\.0\.0\.1:([0-9]{1,5})")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,200}")


class NotRunning(SpringtideError):
    """No app can be reached through this directory."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(directory, reason)
        self.directory, self.reason = directory, reason

    def __str__(self) -> str:
        return (
            f"no running app can be reached through {self.directory}: {self.reason}. "
            "Start the app, or say with --checkpoint where it keeps its state"
        )


class StillStarting(NotRunning):
    """The app is there, and does not run yet."""

    def __init__(self, directory: str, app: str, stage: str, seconds: float) -> None:
        super().__init__(directory, f"{app!r} is at {stage}")
        self.args = directory, app, stage, seconds
        self.app, self.stage, self.seconds = app, stage, seconds

    @classmethod
    def of(cls, here: Presence, directory: Path) -> "StillStarting":
        """The app that is here."""
        return cls(str(directory), here.app, here.stage, max(0.0, time.time() - here.since))

    def __str__(self) -> str:
        return f"{self.app!r} is starting, {self.seconds:.0f} s so far, now: {self.stage}. Try again when it runs"


class Embedded(NotRunning):
    """The app runs in one process with Spark, where there is nothing to change."""

    def __init__(self, directory: str, app: str) -> None:
        super().__init__(directory, f"{app!r} runs embedded")
        self.args = directory, app
        self.app = app

    def __str__(self) -> str:
        return (
            f"{self.app!r} runs embedded, on one worker inside its own process, which has no controls. "
            f"Stop it and start it with --workers N; springtide status {self.app} shows what it does"
        )


def control_directory(checkpoint: str, otherwise: str) -> Path:
    """Where an app with this checkpoint leaves its address: there if it is a local path, else in `otherwise`."""
    path = checkpoint.removeprefix("file://").removeprefix("local://")
    return Path(otherwise) if "://" in path else Path(path).expanduser()


@dataclass(frozen=True)
class Address:
    """How to reach an app, and the token that proves the right to."""

    url: str
    token: str
    pid: int
    app: str

    @property
    def port(self) -> int:
        match = _URL.fullmatch(self.url)
        if match is None or not 0 < int(match[1]) < 65536:
            raise BadValue(f"the URL is {self.url!r}: expected http://127.0.0.1:PORT")
        return int(match[1])

    @classmethod
    def decode(cls, data: bytes) -> "Address":
        """From the file's content; ValueError if it is not what `encode` writes."""
        fields = json.loads(data)
        kinds = {"url": str, "token": str, "pid": int, "app": str}
        if not isinstance(fields, dict) or {name: type(value) for name, value in fields.items()} != kinds:
            raise BadValue(f"expected the fields {', '.join(kinds)}")
        address = cls(**fields)
        if not (_TOKEN.fullmatch(address.token) and NAME.fullmatch(address.app) and 0 < address.pid < 2**31):
            raise BadValue("a field has a value that no app writes")
        _ = address.port
        return address

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def write(self, directory: Path) -> None:
        """Put the file in place, whole; nobody else can read it at any moment."""
        write_owner_file(directory / FILE, self.encode())

    def remove(self, directory: Path) -> None:
        """Take the file away, unless another app has put its own there."""
        remove_owner_file(directory / FILE, self.encode())

    @classmethod
    def read(cls, directory: Path) -> "Address":
        """The address of the app that lives; NotRunning if there is none."""
        try:
            address = cls.decode((directory / FILE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise _unreachable(directory) from None
        except OSError as error:
            raise NotRunning(str(directory), f"its {FILE} can't be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise NotRunning(str(directory), f"its {FILE} is damaged ({error})") from error
        if not process_lives(address.pid):
            raise NotRunning(str(directory), f"process {address.pid} of its {FILE} is not alive on this machine")
        return address


def _unreachable(directory: Path) -> NotRunning:
    """Why there is no address: the app starts, it runs embedded, or it does not run."""
    here = Presence.read(directory)
    if here is None:
        return NotRunning(str(directory), f"there is no {FILE} in it")
    if here.starting:
        return StillStarting.of(here, directory)
    return Embedded(str(directory), here.app)

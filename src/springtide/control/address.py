"""Where a running app can be reached: a file that only its owner can read."""

import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

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
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / f".{FILE}.{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(self.encode())
            os.replace(temporary, directory / FILE)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def remove(self, directory: Path) -> None:
        """Take the file away, unless another app has put its own there."""
        path = directory / FILE
        try:
            if path.read_bytes() == self.encode():
                path.unlink()
        except OSError:
            return  # It is gone, or its directory is: either way nobody finds this app any more.

    @classmethod
    def read(cls, directory: Path) -> "Address":
        """The address of the app that lives; NotRunning if there is none."""
        try:
            address = cls.decode((directory / FILE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise NotRunning(str(directory), f"there is no {FILE} in it") from None
        except OSError as error:
            raise NotRunning(str(directory), f"its {FILE} can't be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise NotRunning(str(directory), f"its {FILE} is damaged ({error})") from error
        if not _lives(address.pid):
            raise NotRunning(str(directory), f"process {address.pid} of its {FILE} is not alive on this machine")
        return address


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

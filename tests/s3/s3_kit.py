"""An S3 server that can be started and stopped, and stores in its buckets."""

import json
import os
import secrets
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

import pytest
from s3fs import S3FileSystem

from springtide.blocks.store import ObjectStore, open_store

SCRIPT = Path(__file__).with_name("s3_server.py")
REGION = "us-east-1"


@dataclass(frozen=True)
class Key:
    """Who asks."""

    id: str
    secret: str


class S3:
    """A server; what is in its buckets goes with it."""

    def __init__(self, *, checked: bool = False) -> None:
        self.port, self.checked = _free_port(), checked
        self.key = Key("nobody", "knows")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "S3":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, with empty buckets; returns when it listens."""
        command = [sys.executable, str(SCRIPT), str(self.port), "checked" if self.checked else "open"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.key = Key(told["key"], told["secret"])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def environment(self, key: Key | None = None) -> dict[str, str]:
        """What lets s3fs in, and Hadoop's S3A as far as it reads the environment."""
        key = key or self.key
        return {
            "AWS_ACCESS_KEY_ID": key.id,
            "AWS_SECRET_ACCESS_KEY": key.secret,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def use(self, monkeypatch: pytest.MonkeyPatch, key: Key | None = None) -> None:
        """Let `s3://` lead here: a driver looks at the environment once it is asked for something."""
        for name, value in self.environment(key).items():
            monkeypatch.setenv(name, value)
        S3FileSystem.clear_instance_cache()


def a_place(bucket: str = "tide") -> str:
    """The URL of a directory that nobody else uses."""
    return f"s3://{bucket}/{uuid4().hex}/checkpoint"


def s3_store(bucket: str = "tide") -> ObjectStore:
    """A store of its own."""
    store = open_store(a_place(bucket))
    assert isinstance(store, ObjectStore)
    return store


def everything(store: ObjectStore) -> dict[str, bytes]:
    """All names in a store, and their bytes."""
    files: Any = store.filesystem.find(store.path)
    return {name.removeprefix(f"{store.path}/"): store.filesystem.cat_file(name) for name in files}


def stranger() -> Key:
    """Someone whom no server knows."""
    return Key(f"AKIA{secrets.token_hex(8).upper()}", secrets.token_hex(20))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

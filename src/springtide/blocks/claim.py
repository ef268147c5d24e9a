"""The claim: one driver at a time holds a checkpoint.

Each driver takes the next generation by put-if-absent, and renews it while it lives. A later driver
takes over at once when it can see that the holder is dead (same machine), and otherwise when the
holder has not renewed its claim for `LEASE_S`. A holder that wakes up after that finds out by `check`, see
`springtide.blocks.fence`.
"""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from springtide import codec, faults
from springtide.blocks.atomicity import check_atomic
from springtide.blocks.errors import AlreadyThere, CheckpointInUse, TakenOver
from springtide.blocks.patience import PatientStore
from springtide.blocks.store import Store, put_own
from springtide.logs import room_logger
from springtide.waits import let_go

log = room_logger(__name__)

DIRECTORY = "drivers"
LEASE_S = 30.0
RENEW_S = 5.0

_NAME = re.compile(r"([0-9]{9,})\.json")


@dataclass(frozen=True)
class Holder:
    """Who holds a checkpoint; `beat` grows while it lives."""

    host: str
    boot: str
    pid: int
    started: str
    beat: int = 0
    namespace: str = ""
    """In which its process number means anything: containers of one machine have different ones."""
    released: bool = False
    """It has given the claim back."""
    token: str = ""
    """Of this claim alone: who tries again because an answer was lost knows its own by it."""

    def encode(self) -> bytes:
        return codec.dumps(self).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Holder":
        found = codec.loads(cls, data)
        return replace(found, released=found.released or found.pid < 0)  # Earlier releases had -1 for a process then.

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Holder:
    """This process, so that nobody mistakes another with the same number for it."""
    return Holder(socket.gethostname(), _boot(), os.getpid(), _started(os.getpid()), namespace=_namespace())


def alive(holder: Holder) -> bool | None:
    """Does the holder live? None if it can't be told from here."""
    here = (socket.gethostname(), _boot(), _namespace())
    if (holder.host, holder.boot, holder.namespace) != here or not all(here):
        return None
    return _started(holder.pid) == holder.started


class Claim:
    """A held checkpoint; `release` gives it back. `generation` orders the drivers it has had."""

    def __init__(self, store: Store, generation: int, holder: Holder) -> None:
        self.store = store
        self.generation = generation
        self._holder = holder
        self.on_lost: Callable[[TakenOver], None] = lambda error: None
        """Called once, by another thread, if a later driver was seen to have claimed the checkpoint."""
        self._done = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="springtide-claim", daemon=True)
        self._renewal.start()

    def check(self) -> None:
        """TakenOver if a later driver has claimed the checkpoint; a store that is away is waited for."""
        self._look(PatientStore(self.store))

    def look(self) -> None:
        """The same, asked once: StoreFailed or another OSError if the store is away."""
        self._look(self.store)

    def _look(self, store: Store) -> None:
        newest = max(_generations(store), default=self.generation)
        if newest > self.generation:
            raise TakenOver(self.generation, _named(store, newest))

    def _renew(self) -> None:
        beat = 0
        while not self._done.wait(RENEW_S):
            beat += 1
            try:
                self.look()
                self.store.put(_path(self.generation), replace(self._holder, beat=beat).encode())
            except TakenOver as error:
                log.error("%s", error)
                self.on_lost(error)
                return
            except Exception as error:
                # A store that is away does not lose the claim; and should another take it meanwhile, the fence holds.
                log.warning("the claim of %s could not be renewed: %s", self.store.url, error)

    def release(self) -> None:
        """Let the next driver in at once."""
        self._done.set()
        let_go(self._renewal)
        self.store.put(_path(self.generation), replace(self._holder, released=True).encode())


def claim(
    store: Store,
    *,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Claim:
    """Take the checkpoint, or raise CheckpointInUse before anything else is written."""
    generations = _generations(store)
    last = max(generations, default=0)
    if last:
        _ensure_gone(store, last, now, wait)
    check_atomic(store, DIRECTORY)
    me = replace(this_process(), token=uuid.uuid4().hex)
    faults.fire("claim.put")
    try:
        put_own(PatientStore(store), _path(last + 1), me.encode())
    except AlreadyThere:
        raise _in_use(store) from None
    if max(_generations(store)) > last + 1:
        # Others have come and gone since we looked, and ours is a generation that was over.
        store.delete([_path(last + 1)])
        raise _in_use(store)
    store.delete(_path(g) for g in generations)
    return Claim(store, last + 1, me)


def _ensure_gone(store: Store, generation: int, now: Callable[[], float], wait: Callable[[float], None]) -> None:
    """Return once the holder is known to be dead or silent for a lease; raise if it lives."""
    holder = _holder(store, generation)
    if holder.released:
        return
    lives = alive(holder)
    if lives is False:
        return
    if lives:
        raise CheckpointInUse(store.url, str(holder))
    deadline = now() + LEASE_S
    while now() < deadline:
        wait(1.0)
        there = _holder(store, generation)
        if there.released:
            return
        if there.beat != holder.beat:
            raise CheckpointInUse(store.url, str(holder))


def _holder(store: Store, generation: int) -> Holder:
    """Who holds a generation; if it is over and gone, somebody else has the checkpoint by now."""
    try:
        return Holder.decode(store.get(_path(generation)))
    except FileNotFoundError:
        raise _in_use(store) from None


def _in_use(store: Store) -> CheckpointInUse:
    return CheckpointInUse(store.url, _named(store, max(_generations(store), default=0)))


def _named(store: Store, generation: int) -> str:
    try:
        return str(Holder.decode(store.get(_path(generation))))
    except FileNotFoundError:
        return "another driver"


def _generations(store: Store) -> list[int]:
    found = (_NAME.fullmatch(name) for name in store.list(DIRECTORY))
    return [int(match[1]) for match in found if match]


def _path(generation: int) -> str:
    return f"{DIRECTORY}/{generation:09d}.json"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]

"""A process and all that it has started: their command lines, and where they listen."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

LISTENING = "0A"


@dataclass(frozen=True)
class Listener:
    """A TCP port that somebody listens on."""

    pid: int
    address: IPv4Address | IPv6Address
    port: int

    @property
    def loopback(self) -> bool:
        mapped = getattr(self.address, "ipv4_mapped", None)
        return (mapped or self.address).is_loopback


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    with suppress(OSError):  # It may end meanwhile.
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def environment(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def listeners(pids: list[int]) -> list[Listener]:
    """The TCP ports on which these processes listen; a child that has just been forked still has its parent's."""
    owners = {inode: pid for pid in reversed(pids) for inode in _sockets(pid)}
    return [
        Listener(owners[inode], address, port)
        for table in ("tcp", "tcp6")
        for address, port, inode in _table(Path("/proc/net") / table)
        if inode in owners
    ]


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if (target := str(descriptor.readlink())).startswith("socket:["):
                    yield target[8:-1]


def _table(path: Path) -> Iterator[tuple[IPv4Address | IPv6Address, int, str]]:
    for line in path.read_text().splitlines()[1:]:
        _, local, _, state, *more = line.split()
        if state == LISTENING:
            address, _, port = local.partition(":")
            # Four bytes at a time in the machine's own order, which is the little end first.
            data = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
            yield ip_address(data), int(port, 16), more[5]

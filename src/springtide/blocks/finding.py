"""What an examination of a checkpoint finds, part by part."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    what: str
    where: str
    """Its name in the checkpoint."""
    means: str
    """For the app."""
    remedy: str
    harmless: bool = False
    """Nothing that the app needs is touched."""


@dataclass
class Part:
    """One kind of thing in a checkpoint."""

    name: str
    files: int = 0
    size_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, size_bytes: int) -> None:
        """One file more."""
        self.files += 1
        self.size_bytes += size_bytes

    @property
    def damaged(self) -> int:
        return sum(not finding.harmless for finding in self.findings)


@dataclass(frozen=True)
class Examination:
    """All of a checkpoint."""

    url: str
    app: str | None
    """The app's name; None if it can't be read."""
    head: int | None
    """The last epoch that is true and whole; None if there is none."""
    parts: tuple[Part, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What matters first."""
        found = (finding for part in self.parts for finding in part.findings)
        return tuple(sorted(found, key=lambda finding: finding.harmless))

    @property
    def sound(self) -> bool:
        """Whether the app finds all that it needs."""
        return all(finding.harmless for finding in self.findings)

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def to_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.url,
            "app": self.app,
            "head": self.head,
            "sound": self.sound,
            "parts": [{"name": p.name, "files": p.files, "size_bytes": p.size_bytes} for p in self.parts],
            "findings": [asdict(finding) for finding in self.findings],
        }

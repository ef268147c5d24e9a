"""A table of figures with the bars that they are held against."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.bench.harness.findings import Figure, rounded
from springtide.present.numbers import NONE


@dataclass
class Table:
    """Figures, and the rows that show them."""

    figures: dict[str, Figure]
    rows: list[list[str]] = field(default_factory=list)

    def both(self, what: str, found: Mapping[str, float | None], bar: str = "") -> None:
        """A figure of each contestant."""
        self.figures |= {f"{what}_{name}": _rounded(value) for name, value in found.items()}
        self.rows.append([what.replace("_", " "), *(_cell(value) for value in found.values()), bar])

    def one(self, what: str, value: float | None, bar: str = "") -> None:
        """A figure that is about shedding."""
        self.figures[what] = _rounded(value)
        self.rows.append([what.replace("_", " "), _cell(value), "", bar])


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def _cell(value: float | None) -> str:
    return NONE if value is None else f"{rounded(value):g}"

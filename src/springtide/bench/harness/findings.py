"""What an experiment found: a table for people, a picture, and one JSON line."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from springtide.present.numbers import NONE
from springtide.present.pictures import NO_PICTURE, can_draw
from springtide.present.tables import plain_table

Figure = float | int | str | None
Figures = Figure | list[Figure] | Mapping[str, "Figures"]
"""A figure, that of each run, or those of each part of an experiment by its name."""
Draw = Callable[[Any], None]
"""Draws on a Matplotlib axes."""


@dataclass(frozen=True)
class Findings:
    """The result of one experiment."""

    name: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Empty cells at the end may be left out."""
    figures: Mapping[str, Figures]
    """By name."""
    draw: Draw
    notes: Sequence[str] = ()
    """What the table has no room for."""

    def publish(self, directory: Path, *, as_json: bool, console: Console) -> None:
        """Print the table, save the picture if it can be drawn, and if asked print the figures as the last line."""
        rows = [[*row, *[""] * (len(self.headers) - len(row))] for row in self.rows]
        words = {name for name, *cells in zip(self.headers, *rows, strict=True) if not any(map(_figure, cells))}
        console.print(plain_table(f"springtide bench {self.name}", self.headers, rows, left=words))
        for note in self.notes:
            console.print(note, markup=False)
        if can_draw():
            console.print(f"picture: {self._save_picture(directory)}")
        else:
            console.print(NO_PICTURE, markup=False)
        if as_json:
            print(json.dumps({"bench": self.name, **self.figures}))
        else:
            for name, value in self.figures.items():
                if not isinstance(value, Mapping):  # The table has them.
                    console.print(f"{name}: {value}")

    def _save_picture(self, directory: Path) -> Path:
        # Here, as it is an extra that only benchmarks need.
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"bench-{self.name}.png"
        figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        self.draw(axes)
        figure.savefig(path, dpi=120)
        pyplot.close(figure)
        return path


def _figure(cell: str) -> bool:
    """Whether it is one, or stands for one."""
    return cell[:1].isdigit() or cell == NONE


def rounded(value: float, digits: int = 3) -> float:
    """A figure without false precision."""
    return float(f"{value:.{digits}g}") if abs(value) < 1000 else float(round(value))

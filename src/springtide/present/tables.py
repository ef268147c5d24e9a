"""Tables for people, on terminals as narrow as 80 columns: no heading and no figure is ever cut."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

GAP = 2
"""Between two columns: a blank of its own and one of the box."""
EDGE = 1
"""What the box takes beside its columns."""
NARROWEST = 12
"""A column of words may be wrapped down to this width."""


@dataclass(frozen=True)
class FittingTable:
    """A table; where it is too wide for the terminal, several tables that begin with the same first column."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Collection[str]
    """Columns that stand to the left, as words do; the others are figures."""
    wrapped: Collection[str]
    """Columns that may take several lines a row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        for number, columns in enumerate(fitting(self._widths(), options.max_width - EDGE)):
            yield self._part(self.title if not number else "", columns, options.max_width - EDGE)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        whole = sum(width + GAP for width in self._widths()) + EDGE
        return Measurement(min(whole, options.max_width), min(whole, options.max_width))

    def _part(self, title: str, columns: Sequence[int], room: int) -> Table:
        table = Table(
            title=Text(title) if title else None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        widths = self._widths()
        too_wide = sum(widths[i] + GAP for i in columns) > room
        for i in columns:
            name = self.names[i]
            wraps = name in self.wrapped or (too_wide and widths[i] == max(widths[j] for j in columns))
            table.add_column(
                name.replace(" ", "\n"),
                justify="left" if name in self.left else "right",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
                min_width=min(widths[i], NARROWEST) if wraps else None,
            )
        for row in self.rows:
            table.add_row(*(Text(row[i]) for i in columns))
        return table

    def _widths(self) -> list[int]:
        """Of each column; one that may be wrapped counts with the least that it can do with."""
        found = []
        for i, name in enumerate(self.names):
            heading = max(cell_len(word) for word in name.split(" "))
            cells = max((cell_len(row[i]) for row in self.rows), default=0)
            found.append(max(heading, min(cells, NARROWEST) if name in self.wrapped else cells))
        return found


def plain_table(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[str],
    wrapped: Collection[str] = (),
) -> FittingTable:
    """Figures to the right, and the columns in `left` to the left; a heading takes one line a word."""
    return FittingTable(title, names, rows, left, wrapped)


def fitting(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns, by their numbers, dealt in order to tables no wider than `room`; each of them begins with the first."""
    tables: list[list[int]] = []
    current = [0]
    for column in range(1, len(widths)):
        wider = [*current, column]
        if len(current) > 1 and sum(widths[i] + GAP for i in wider) > room:
            tables.append(current)
            wider = [0, column]
        current = wider
    return [*tables, current]

"""Tables for people, on terminals as narrow as 80 columns: no heading and no figure is ever cut."""

from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2
"""Between two columns: a blank of its own and one of the box."""
EDGE = 1
"""What the box takes beside its columns."""
NARROWEST = 12
"""A column of words may be wrapped down to this width."""


def plain_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> Table:
    """Figures to the right, and the columns in `left` to the left; a heading takes one line a word."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        heading = name.replace(" ", "\n")
        table.add_column(heading, justify="left" if name in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def print_table(
    terminal: Console,
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[str],
    keys: int = 1,
) -> None:
    """Print a table; on a narrow terminal as several, each of which begins with the first `keys` columns."""
    widths = [_width(name, [row[i] for row in rows]) for i, name in enumerate(names)]
    room = terminal.width - EDGE
    for number, columns in enumerate(fitting(widths, room, keys)):
        chosen = [names[i] for i in columns]
        part = plain_table(title if not number else "", chosen, [[row[i] for i in columns] for row in rows], left)
        if sum(widths[i] + GAP for i in columns) > room:  # One column of words is too wide by itself.
            widest = max(columns, key=lambda i: widths[i])
            column = part.columns[columns.index(widest)]
            column.no_wrap, column.overflow, column.min_width = False, "fold", NARROWEST
        terminal.print(part)


def fitting(widths: Sequence[int], room: int, keys: int) -> list[list[int]]:
    """Columns, by their numbers, dealt in order to tables no wider than `room`; each repeats the first `keys`."""
    first = list(range(keys))
    tables: list[list[int]] = []
    current = list(first)
    for column in range(keys, len(widths)):
        wider = [*current, column]
        if len(current) > keys and sum(widths[i] + GAP for i in wider) > room:
            tables.append(current)
            wider = [*first, column]
        current = wider
    return [*tables, current]


def _width(name: str, cells: Sequence[str]) -> int:
    return max(cell_len(text) for text in [*name.split(" "), *cells])

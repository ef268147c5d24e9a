"""Tables for people."""

from collections.abc import Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text


def plain_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> Table:
    """Figures to the right, and the columns in `left` to the left; a heading takes one line a word."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        heading = name.replace(" ", "\n")
        table.add_column(heading, justify="left" if name in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table

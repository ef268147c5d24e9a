"""The best rows in the terminal, as a sink."""

from dataclasses import dataclass, field
from typing import Any

from rich.console import Console as Terminal
from rich.table import Table

from springtide.dataflow.sink_spec import EpochOutput, SinkSpec


@dataclass
class Console(SinkSpec):
    """The rows with the greatest values of a column, as a table in the terminal."""

    top: int
    by: str
    terminal: Terminal | None = field(default_factory=Terminal)
    """Where to print; None only remembers the rows for whoever asks for `best`."""
    _latest: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict, init=False)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return (("by", self.by),)

    def publish(self, output: EpochOutput) -> None:
        for row in output.top(self.by, self.top).to_pylist():
            self._latest[tuple(row[name] for name in output.key)] = row
        self._latest = {tuple(row[name] for name in output.key): row for row in self.best()}
        if self.terminal is not None and self._latest:
            self.terminal.print(self.render(f"{output.sink}, epoch {output.epoch}"))

    def best(self) -> list[dict[str, Any]]:
        """The best rows seen, best first."""
        known = [row for row in self._latest.values() if row[self.by] is not None]
        return sorted(known, key=lambda row: row[self.by], reverse=True)[: self.top]

    def render(self, title: str) -> Table:
        rows = self.best()
        table = Table(title=title, title_justify="left")
        for name in rows[0] if rows else ():
            table.add_column(name, justify="right" if isinstance(rows[0][name], int | float) else "left")
        for row in rows:
            table.add_row(*(str(value) for value in row.values()))
        return table


def console(*, top: int = 10, by: str) -> Console:
    """Print the `top` rows by a column after each epoch."""
    return Console(top, by)

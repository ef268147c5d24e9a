"""What a person sees while an app runs: a table that updates, or one line an epoch if nobody watches."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from springtide.metrics.epoch_figures import figure, rate
from springtide.metrics.report import EpochReport
from springtide.metrics.totals import Totals
from springtide.present.numbers import again, number, seconds, shown

SHOWN = 6
"""Epochs in the table; the rate above it is over these, too."""

Beside = Callable[[], Sequence[RenderableType]]


class View(Protocol):
    """Watches an app from before Spark starts until the app has ended."""

    def __enter__(self) -> "View":
        """Start to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last picture behind."""

    def begins(self, part: str) -> None:
        """A part of the start begins, and the one before it is done: `Spark`, `2 workers`, `first epoch`."""

    def doing(self, what: str) -> None:
        """What is going on when no epoch tells."""

    def epoch(self, report: EpochReport) -> None:
        """An epoch has ended. Called from another thread."""


def open_view(apps: Sequence[str], terminal: Console, *, quiet: bool = False, beside: Beside | None = None) -> View:
    """The view that suits the terminal; `beside` is asked for more to show after each epoch."""
    if quiet:
        return NoView()
    if terminal.is_terminal and len(apps) == 1:
        return TableView(apps[0], terminal, beside)
    return LineView(terminal, named=len(apps) > 1)


class NoView:
    """Shows nothing."""

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to leave behind."""

    def begins(self, part: str) -> None:
        """Nobody wants to know."""

    def doing(self, what: str) -> None:
        """Nobody wants to know."""

    def epoch(self, report: EpochReport) -> None:
        """Nobody wants to know."""


class Start:
    """The parts of an app's start, and how long each of them took."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._tell, self._clock = tell, clock
        self._began = self._part_began = clock()
        self.part: str | None = None
        """The one under way."""

    def begins(self, part: str | None) -> None:
        """The part before is done; None after the last one."""
        now = self._clock()
        if self.part is not None and self.part != part:
            self._tell(f"{self.part}: {now - self._part_began:.1f} s, {now - self._began:.1f} s since the start")
        if self.part != part:
            self.part, self._part_began = part, now


class LineView(NoView):
    """One plain line an epoch, for logs and pipes, and for several apps at once."""

    def __init__(self, terminal: Console, *, named: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.terminal, self.named = terminal, named
        self._start = Start(self._print, clock)

    def begins(self, part: str) -> None:
        self._start.begins(part)

    def doing(self, what: str) -> None:
        self._print(what)

    def epoch(self, report: EpochReport) -> None:
        self._start.begins(None)
        done_before = again(report)
        self._print(
            f"{f'{report.app}: ' if self.named else ''}epoch {report.epoch}"
            f"{f' ({done_before})' if done_before else ''}"
            f"  rows {shown('rows_in', report)}"
            f"  rows/s {shown('rows_per_s', report)}"
            f"  took {seconds(figure('epoch_s', report))}"
            f"  latency {seconds(figure('latency_s', report))}"
            f"  lag {shown('lag_rows', report)}"
            f"  state rows {shown('state_rows', report)}"
            f"{'  accuracy ' + shown('accuracy', report) if report.queries else ''}"
        )

    def _print(self, line: str) -> None:
        self.terminal.print(line, markup=False, highlight=False, soft_wrap=True)


class TableView:
    """The last epochs as a table that updates, under a line that moves while nothing else does."""

    def __init__(
        self,
        app: str,
        terminal: Console,
        beside: Beside | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.beside, self.clock = app, beside, clock
        self.last: list[EpochReport] = []
        self.totals = Totals()
        self._began = clock()
        self._what: str | None = "starting"
        self._start = Start(lambda line: self._live.console.print(line, style="dim", highlight=False), clock)
        self._spinner = Spinner("dots", style="cyan")
        self._extra: Sequence[RenderableType] = ()
        self._live = Live(console=terminal, get_renderable=self._picture, refresh_per_second=8)

    def __enter__(self) -> View:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._what = None
        self._live.__exit__(kind, error, trace)

    def begins(self, part: str) -> None:
        self._start.begins(part)
        self._what = f"starting: {part}"

    def doing(self, what: str) -> None:
        self._what = what

    def epoch(self, report: EpochReport) -> None:
        self._start.begins(None)
        if self.beside is not None:
            self._extra = self.beside()
        self.totals = self.totals.after(report)
        self.last = [*self.last, report][-SHOWN:]

    def _picture(self) -> RenderableType:
        return Group(self._headline(), self._body()) if self.last else self._headline()

    def _headline(self) -> RenderableType:
        text = Text.assemble((self.app, "bold cyan"), f"  {self.clock() - self._began:.0f} s")
        if self.last:
            counts = (number(self.totals.count(name)) for name in ("epochs_total", "rows_total"))
            text.append("  {} epochs  {} rows".format(*counts))
            text.append(f"  {number(rate(self.last))} rows/s lately")
        if self._what is None:
            return text
        text.append(f"  {self._what}", style="dim")
        self._spinner.update(text=text)
        return self._spinner

    def _body(self) -> RenderableType:
        return Columns([self._table(), *self._extra], padding=(0, 4))

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        sheds = any(report.queries for report in self.last)
        more = ("accuracy",) if sheds else ()
        for name in ("epoch", "rows", "rows/s", "took", "latency", "lag", "state rows", *more):
            table.add_column(name, justify="right", no_wrap=True)
        for report in self.last:
            table.add_row(
                f"{report.epoch}{'*' if report.replayed else ''}",
                shown("rows_in", report),
                shown("rows_per_s", report),
                seconds(figure("epoch_s", report)),
                seconds(figure("latency_s", report)),
                shown("lag_rows", report),
                shown("state_rows", report),
                *([shown("accuracy", report)] if sheds else []),
            )
        return table

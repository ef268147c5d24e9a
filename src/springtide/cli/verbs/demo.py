"""`springtide demo`: a word count that runs, shows itself, ends, and proves its result."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich import box
from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from springtide import App, agg, sinks, sources
from springtide.cli.shared.demo_story import Story
from springtide.cli.shared.live_view import open_view
from springtide.cli.shared.options import Traceback
from springtide.cli.shared.quiet import without_jvm_warnings
from springtide.cli.shared.signals import end_on_signals
from springtide.cli.shared.stopping import wait_or_stop
from springtide.connectors.generator.rows import GeneratorSpec
from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.engine.spark.session import SessionConfig, make_session
from springtide.metrics.epoch_figures import rate
from springtide.metrics.report import EpochReport
from springtide.present import numbers as figures
from springtide.present.numbers import number
from springtide.scratch import scratch

WORDS_PER_ROW = 8
VOCABULARY = 5_000
SKEW = 1.1
TOP = 8
FEW, MANY = 2, 3
INTERRUPTED = 130
EVERY = 100_000
"""Reports that are kept: all of them, as a demo is short."""


@dataclass
class Counts(SinkSpec):
    """A sink that keeps the last count of every word."""

    by_word: dict[str, int] = field(default_factory=dict)

    def publish(self, output: EpochOutput) -> None:
        rows = output.table()
        self.by_word.update(zip(rows["word"].to_pylist(), rows["n"].to_pylist(), strict=True))


def demo(
    embedded: Annotated[
        bool, typer.Option("--embedded", help="On one worker inside this process: no change, half the time.")
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="With --embedded: lines in all; default rate times seconds.", show_default=False),
    ] = None,
    rate: Annotated[int, typer.Option(min=1, help="Lines that fall due every second, consumed or not.")] = 2_000,
    seconds: Annotated[int, typer.Option(min=1, help="With --embedded: for how long lines fall due.")] = 15,
    seed: Annotated[int, typer.Option(help="Another seed is another text.")] = 7,
    traceback: Traceback = False,
) -> None:
    """Count words on Spark, live, on 2 workers; grow to 3, lose one to SIGKILL, shrink back to 2.

    Then count the same lines again in plain Python, and compare. The workers are real Spark executors, all
    on this machine. Needs no files, no network and no cluster, and leaves nothing behind.
    """
    if not embedded:
        text = sources.generator(
            rate, seed=seed, words_per_row=WORDS_PER_ROW, keys=VOCABULARY, skew=SKEW, max_rows_per_epoch=4 * rate
        )
        _demo_with_workers(text, rate)
        return
    limit = rows if rows is not None else rate * seconds
    text = sources.generator(
        rate,
        seed=seed,
        limit=limit,
        words_per_row=WORDS_PER_ROW,
        keys=VOCABULARY,
        skew=SKEW,
        max_rows_per_epoch=2 * rate,
    )
    terminal = Console()
    terminal.print(
        f"Word count over {number(limit)} generated lines of {WORDS_PER_ROW} words, {number(rate)} lines a second.",
        highlight=False,
    )
    counts, top = Counts(), sinks.Console(TOP, "n", None)
    run = _run(word_count(text, counts, top), limit, terminal, top)
    if run.stopped:
        terminal.print("Stopped before the end; nothing to compare.")
        raise typer.Exit(INTERRUPTED)
    with terminal.status("counting the same lines in plain Python"):
        expected = batch_count(text.spec, limit)
    summarise(terminal, run)
    if not compare(terminal, counts.by_word, expected):
        raise typer.Exit(1)


def _demo_with_workers(text: sources.Generator, rate: int) -> None:
    terminal = Console()
    terminal.print(
        f"Word count over generated lines of {WORDS_PER_ROW} words, {number(rate)} lines a second, "
        f"on {FEW} workers, then {MANY}, then {FEW}.",
        highlight=False,
    )
    counts, top = Counts(), sinks.Console(TOP, "n", None)
    began = time.monotonic()
    with (
        scratch("demo") as place,
        open_view(["word count"], terminal, beside=lambda: [_top_words(top)]) as view,
        without_jvm_warnings(),
    ):
        with end_on_signals("while the demo was starting"):
            running = word_count(text, counts, top).start(
                checkpoint=str(place / "checkpoint"),
                local=str(place / "local"),
                workers=FEW,
                on_epoch=view.epoch,
                on_start=view.begins,
                keep_reports=EVERY,
            )
        start_s = time.monotonic() - began
        story = Story(running, FEW, MANY, view.doing)
        story.start()
        reports, stopped = wait_or_stop(running, lambda: view.doing("finishing the epoch in flight"))
    if stopped:
        terminal.print("Stopped before the end; nothing to compare.")
        raise typer.Exit(INTERRUPTED)
    lines = sum(r.rows_in for r in reports)
    with terminal.status("counting the same lines in plain Python"):
        expected = batch_count(text.spec, lines)
    summarise(terminal, Run(reports, start_s, stopped))
    terminal.print(story.table())
    if story.failure is not None:
        terminal.print(f"[bold red]The story broke off:[/] {story.failure}")
    if not compare(terminal, counts.by_word, expected) or story.failure is not None:
        raise typer.Exit(1)


def word_count(text: sources.Generator, counts: SinkSpec, top: SinkSpec) -> App:
    """Lines, split into words, counted by word."""
    app = App("demo")
    words = app.source("lines", text).transform("words", lambda df: df.selectExpr("explode(split(text, ' ')) AS word"))
    counted = words.key_by("word").aggregate("count", n=agg.count())
    counted.sink("all", counts)
    counted.sink("top", top)
    return app


@dataclass(frozen=True)
class Run:
    """How the demo went."""

    reports: list[EpochReport]
    start_s: float
    """Until Spark and its workers were up."""
    stopped: bool
    """By a person, before the end."""


def _run(app: App, limit: int, terminal: Console, top: sinks.Console) -> Run:
    """Run to the end on a temporary checkpoint."""
    began = time.monotonic()
    with (
        scratch("demo") as place,
        open_view(["word count"], terminal, beside=lambda: [_top_words(top)]) as view,
    ):
        with end_on_signals("while the demo was starting"), without_jvm_warnings():
            view.begins("Spark")
            spark = make_session("springtide-demo", SessionConfig())
        try:
            with end_on_signals("while the demo was starting"):
                view.begins("a few lines for practice")
                _practice().run(spark, checkpoint=str(place / "practice"), until="available")
                start_s = time.monotonic() - began
                running = app.start(
                    spark,
                    checkpoint=str(place / "checkpoint"),
                    local=str(place / "local"),
                    until=f"rows={limit}",
                    on_epoch=view.epoch,
                    on_start=view.begins,
                    keep_reports=EVERY,
                )
            view.doing("counting")
            reports, stopped = wait_or_stop(running, lambda: view.doing("finishing the epoch in flight"))
        finally:
            spark.stop()
    return Run(reports, start_s, stopped)


def _practice() -> App:
    """A few lines first: a Spark process takes many seconds for its first epoch, to compile and start workers."""
    lines = sources.generator(1000, limit=10, words_per_row=WORDS_PER_ROW, keys=VOCABULARY, start_s=0.0)
    return word_count(lines, sinks.noop(), sinks.noop())


def _top_words(top: sinks.Console) -> Table:
    best = top.best()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("word", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in best:
        table.add_row(row["word"], number(row["n"]), Bar(best[0]["n"], 0, row["n"], width=16, color="cyan"))
    return table


def batch_count(spec: GeneratorSpec, limit: int, at_once: int = 20_000) -> Counter[str]:
    """The words of the same lines, counted one by one: no Spark, no slices, no epochs."""
    counted: Counter[str] = Counter()
    for start in range(0, limit, at_once):
        lines = spec.rows(start, min(start + at_once, limit), 0.0).column("text").to_pylist()
        for line in lines:
            counted.update(line.split(" "))
    return counted


def summarise(terminal: Console, run: Run) -> None:
    """What the run was like."""
    reports = run.reports
    epoch_s = figures.middle(r.phases.total_s for r in reports)
    latency_s = figures.middle(r.latency_s for r in reports)
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    table.add_row("start-up", figures.seconds(run.start_s), "Spark and its workers")
    table.add_row("lines", number(sum(r.rows_in for r in reports)), f"in {number(len(reports))} epochs")
    table.add_row("lines a second", number(rate(reports[1:])), "from the end of the first epoch on")
    table.add_row("epoch time", figures.seconds(epoch_s), "median")
    table.add_row("latency", figures.seconds(latency_s), "median, from due to published")
    terminal.print(table)


def compare(terminal: Console, counted: dict[str, int], expected: Counter[str], shown: int = 10) -> bool:
    """Say whether both counts are equal, word for word; if not, where they differ."""
    words = sorted(w for w in expected.keys() | counted.keys() if expected.get(w) != counted.get(w))
    if not words:
        terminal.print(
            f"[bold green]Equal:[/] all {number(len(expected))} words have the same count as in a batch count "
            f"in plain Python, {number(expected.total())} words in all."
        )
        return True
    terminal.print(f"[bold red]Different:[/] {number(len(words))} of {number(len(expected))} words.")
    table = Table("word", "streamed", "batch", box=box.SIMPLE_HEAD)
    for word in words[:shown]:
        table.add_row(word, number(counted.get(word)), number(expected.get(word)))
    terminal.print(table)
    return False

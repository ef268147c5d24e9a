"""What a person sees while an app runs."""

import io
from typing import Any

import pytest
from rich.console import Console

from springtide.cli.shared.live_view import SHOWN, LineView, NoView, TableView, open_view
from springtide.cli.shared.outcome import Outcome
from springtide.metrics.report import EpochReport, OperatorReport, Phases
from springtide.present.numbers import middle, seconds, size


def report(epoch: int, **fields: Any) -> EpochReport:
    """An epoch of 1000 rows that ends half a second after the one before it; it took half of that."""
    known: dict[str, Any] = {
        "app": "clicks",
        "epoch": epoch,
        "ended_at": 100 + epoch / 2,
        "plan": 1,
        "replayed": False,
        "rows_in": 1000,
        "rows_out": 5,
        "lag_rows": 40,
        "latency_s": 1.5,
        "dead_letters": 0,
        "phases": Phases(compute_s=0.25),
        "elapsed_s": 0.5,
        "operators": (OperatorReport("counts", state_rows=1234),),
    }
    return EpochReport(**(known | fields))


def test_one_plain_line_an_epoch_when_nobody_watches() -> None:
    out = io.StringIO()
    with open_view(["clicks"], Console(file=out, width=40)) as view:
        assert isinstance(view, LineView)
        view.doing("starting Spark")
        view.epoch(report(0, elapsed_s=0.25))
        view.epoch(report(1, latency_s=None, lag_rows=None, replayed=True, published_again=True))
        view.epoch(report(2, replayed=True))
    assert out.getvalue().splitlines() == [
        "starting Spark",
        "epoch 0  rows 1,000  rows/s 4,000  took 0.25 s  latency 1.50 s  lag 40  state rows 1,234",
        "epoch 1 (published again)  rows 1,000  rows/s 2,000  took 0.25 s  latency -  lag -  state rows 1,234",
        "epoch 2 (repeated)  rows 1,000  rows/s 2,000  took 0.25 s  latency 1.50 s  lag 40  state rows 1,234",
    ]


def test_quiet_shows_nothing() -> None:
    out = io.StringIO()
    with open_view(["clicks"], Console(file=out), quiet=True) as view:
        assert isinstance(view, NoView)
        view.doing("starting Spark")
        view.epoch(report(0))
    assert out.getvalue() == ""


def test_a_table_of_the_last_epochs_in_a_terminal() -> None:
    out = io.StringIO()
    terminal = Console(file=out, width=120, height=40, force_terminal=True, color_system=None)
    with open_view(["clicks"], terminal, beside=lambda: ["the best words"]) as view:
        assert isinstance(view, TableView)
        view.doing("starting Spark")
        for epoch in range(12):
            view.epoch(report(epoch))
    last = out.getvalue().rpartition("12 epochs")[2]
    assert "12,000 rows  2,000 rows/s lately" in last
    assert "the best words" in last
    lines = [line.split() for line in last.splitlines() if line.strip()[:1].isdigit()]
    shown = [line for line in lines if line[1] == "1,000"]
    assert [line[0] for line in shown] == [str(epoch) for epoch in range(12 - SHOWN, 12)]
    assert all(line[2] == "2,000" for line in shown)
    assert "starting Spark" not in last, "the last picture says nothing of what goes on"


def test_epochs_that_were_true_before_are_not_added_up() -> None:
    out = io.StringIO()
    with TableView("clicks", Console(file=out, width=120, force_terminal=True, color_system=None)) as view:
        view.epoch(report(0))
        view.epoch(report(1, replayed=True))
    assert "1 epochs  1,000 rows" in out.getvalue()


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ([report(0), report(1)], " after 2 epochs and 2,000 rows"),
        ([report(0)], " after 1 epoch and 1,000 rows"),
        (
            [report(0, replayed=True, published_again=True), report(1), report(2)],
            " after 2 epochs and 2,000 rows; 1 epoch was published again",
        ),
        (
            [report(0, replayed=True, published_again=True)],
            ": 1 epoch was published again, and there was nothing new",
        ),
        (
            [report(0, replayed=True, published_again=True), report(1, replayed=True), report(2, replayed=True)],
            ": 1 epoch was published again and 2 epochs were repeated, and there was nothing new",
        ),
        ([], " after 0 epochs and 0 rows"),
    ],
)
def test_what_a_run_came_to(reports: list[EpochReport], told: str) -> None:
    assert str(Outcome.of(reports)) == told


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.071, "0.07 s"), (99.9, "99.90 s"), (1234.5, "1,234 s")])
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (999, "999 B"), (56_789, "56.8 kB"), (3.2e15, "3,200.0 TB")])
def test_size(value: float, text: str) -> None:
    assert size(value) == text


def test_the_median_leaves_out_what_is_not_known() -> None:
    assert middle([None, 1.0, 5.0, 3.0]) == 3.0
    assert middle([None]) is None

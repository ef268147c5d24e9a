"""Several runs of one experiment, side by side."""

from springtide.bench.harness.findings import Figure, Findings
from springtide.bench.harness.in_a_row import in_a_row


def _run(drawn: list[str], name: str, figures: dict[str, Figure]) -> Findings:
    return Findings("shed", ["", "with", "bar"], [["lag", "1", "2"]], figures, lambda _: drawn.append(name))


def test_a_single_run_stays_as_it_is() -> None:
    run = _run([], "only", {"lag": 1.0})
    assert in_a_row([run], worst_by="lag") is run


def test_each_run_has_a_column_and_the_worst_is_drawn() -> None:
    drawn: list[str] = []
    runs = [_run(drawn, name, {"lag": lag, "factor": 1.6}) for name, lag in (("a", 0.6), ("b", 1.2), ("c", 0.9))]
    found = in_a_row(runs, worst_by="lag")
    assert found.figures == {"lag": [0.6, 1.2, 0.9], "factor": [1.6, 1.6, 1.6]}
    assert found.headers == ["", "run 1", "run 2", "run 3"]
    assert found.rows == [["lag", "0.6", "1.2", "0.9"], ["factor", "1.6", "1.6", "1.6"]]
    found.draw(None)
    assert drawn == ["b"]


def test_a_run_without_the_figure_is_the_worst() -> None:
    """As one that never recovered."""
    drawn: list[str] = []
    found = in_a_row([_run(drawn, "a", {"lag": 3.0}), _run(drawn, "b", {"lag": None, "foretold": 5})], worst_by="lag")
    found.draw(None)
    assert drawn == ["b"]
    assert found.figures == {"lag": [3.0, None], "foretold": [None, 5]}

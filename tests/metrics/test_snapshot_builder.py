"""From epoch reports to a snapshot: rates, shares, and nothing from before the present plan."""

from dataclasses import replace

import pytest

from springtide.ids import WorkerId
from springtide.metrics.report import (
    EpochReport,
    HostReport,
    InstanceReport,
    OperatorReport,
    Phases,
    Sent,
    SourceReport,
)
from springtide.metrics.snapshot import BadSnapshot, Edge, MeasuredWorker, Snapshot, Source
from springtide.metrics.snapshot_builder import Shape, observe

A, B = WorkerId("a"), WorkerId("b")
SHAPE = Shape(
    (("lines", "count"), ("count", "top")),
    (MeasuredWorker(A, 1), MeasuredWorker(B, 1)),
    {"count": (A, A, B, B), "top": (B, B, A, A)},
    pause_s=0.4,
)


def instance(number: int, worker: WorkerId, rows: int, useful: float, **more: object) -> InstanceReport:
    return InstanceReport(number, rows, rows // 2, process_s=useful, cpu_s=useful, worker=worker, **more)  # type: ignore[arg-type]


def epoch(number: int, *, plan: int = 1, lag: int | None = 0, taken: int | None = 100, end: float = 0.0) -> EpochReport:
    """An epoch of 2 seconds: 100 lines are 400 words, of which 40 and 60 reach the instances combined."""
    host = [HostReport("h", 1.0 * number, 4.0 * number)] * 2
    count = OperatorReport(
        "count",
        400,
        50,
        map_busy_s=0.2,
        state_bytes=1000,
        instances=(
            instance(0, A, 40, 0.4, slice_rows=((0, 30), (1, 10)), host=host[0]),
            instance(1, B, 60, 0.6, slice_rows=((2, 60),), host=host[1]),
        ),
    )
    traffic = (Sent(A, 2, 300), Sent(B, 2, 100))
    top = OperatorReport("top", 25, 5, instances=(instance(0, B, 25, 0.1), instance(1, A, 0, 0.0)), traffic=traffic)
    return EpochReport(
        "app",
        number,
        end or 1000.0 + 2.0 * number,
        plan,
        False,
        taken or 100,
        5,
        lag,
        1.5,
        0,
        Phases(compute_s=1.0),
        (count, top),
        sources=(SourceReport("lines", taken, lag, 1.5),),
    )


def with_host(report: EpochReport, host: HostReport) -> EpochReport:
    operators = [replace(o, instances=tuple(replace(i, host=host) for i in o.instances)) for o in report.operators]
    return replace(report, operators=tuple(operators))


def snapshot(*epochs: EpochReport, window_s: float = 60.0) -> Snapshot:
    found = observe(epochs, SHAPE, window_s)
    assert found is not None
    found.check()
    return found


def test_rates_of_operators_and_the_shares_of_their_instances() -> None:
    found = snapshot(*(epoch(n) for n in range(6)))
    assert (found.epochs, found.window_s, found.epoch_s, found.pause_s) == (5, 10.0, 1.0, 0.4)
    first, second = found.operators["count"]
    assert (first.worker, first.records_in, second.records_in) == (A, pytest.approx(5 * 160), pytest.approx(5 * 240))
    assert first.useful_s == pytest.approx(5 * (0.4 + 0.4 * 0.2)), "with its share of what was done before the shuffle"
    assert first.true_rate == pytest.approx(160 / 0.48)
    assert list(found.operators) == ["count", "top"]


def test_stateless_steps_show_on_the_edges() -> None:
    found = snapshot(*(epoch(n) for n in range(4)))
    assert found.edges == (Edge("lines", "count", 4.0), Edge("count", "top", 0.5))


def test_rows_that_wait_have_fallen_due_too() -> None:
    found = snapshot(*(epoch(n, lag=50 * n) for n in range(5)))
    assert found.sources == (Source("lines", pytest.approx(75.0), 200.0, 1.5, pytest.approx(75.0), 50.0),)
    assert sum(i.queue_rows for i in found.operators["count"]) == pytest.approx(200)
    assert sum(i.queue_rows for i in found.operators["top"]) == 0, "only what a source has can wait"


def test_a_source_that_can_not_tell() -> None:
    found = snapshot(*(epoch(n, lag=None, taken=None) for n in range(3)))
    assert found.sources == (Source("lines", 50.0, 0.0, 1.5, 50.0, 50.0),)


def test_a_source_that_does_not_answer_for_a_while_has_not_lost_its_rows() -> None:
    """Neither is its backlog gone meanwhile, nor has it come in all at once afterwards."""
    steady = [epoch(n, lag=5000 + 200 * n) for n in range(6)]
    quiet = [replace_lag(report, None) for report in steady[4:]]
    found = snapshot(*steady[:4], *quiet)
    assert found.sources[0].lag_rows == 5600
    assert found.sources[0].rate == pytest.approx(150.0)
    again = snapshot(*steady[:3], *(replace_lag(report, None) for report in steady[3:5]), steady[5])
    assert (again.sources[0].lag_rows, again.sources[0].rate) == (6000, pytest.approx(150.0))
    assert observe([steady[0], *quiet], SHAPE, 60.0) is None


def replace_lag(report: EpochReport, lag: int | None) -> EpochReport:
    sources = tuple(replace(source, lag_rows=lag) for source in report.sources)
    return replace(report, lag_rows=lag, sources=sources)


def test_a_source_that_knows_how_fast_rows_come_in_is_believed() -> None:
    epochs = [epoch(n, lag=50 * n) for n in range(5)]
    last = replace(epochs[-1], sources=(replace(epochs[-1].sources[0], injected_rows_per_s=81.5),))
    (source,) = snapshot(*epochs[:-1], last).sources
    assert (source.rate, source.taken) == (81.5, 50.0)


def test_rates_are_those_of_late() -> None:
    """Four epochs of 50 rows/s, then two of 150."""
    epochs = [epoch(n, taken=100 if n < 5 else 300) for n in range(7)]
    (source,) = snapshot(*epochs).sources
    assert (source.rate, source.rate_before, source.steady) == (pytest.approx(150.0), pytest.approx(50.0), False)
    (source,) = snapshot(*epochs[:5]).sources
    assert (source.rate, source.steady) == (pytest.approx(50.0), True)


def test_a_window_reaches_back_to_the_present_plan_and_no_further() -> None:
    epochs = [epoch(n, plan=1 if n < 3 else 2) for n in range(6)]
    found = snapshot(*epochs)
    assert (found.epochs, found.window_s) == (3, 6.0)
    assert snapshot(*epochs, window_s=3.0).epochs == 2
    assert observe(epochs[:1], SHAPE, 60.0) is None
    again = replace(epochs[5], replayed=True)
    assert snapshot(*epochs, again).epochs == 3, "what is repeated is not counted"


def test_processors_of_a_worker_and_of_whoever_else_is_there() -> None:
    found = snapshot(*(epoch(n) for n in range(6)))
    # The machine was busy for 5 of 20 processor seconds; 5.5 are ours, more than it noticed.
    assert [w.cpu for w in found.workers] == [pytest.approx(0.2), pytest.approx(0.35)]
    busy = [with_host(epoch(n), HostReport("h", 3.0 * n, 4.0 * n)) for n in range(6)]
    assert snapshot(*busy).workers[0].cpu == pytest.approx(0.2 + (15 - 5.5) / 20)


def test_slices_and_traffic() -> None:
    found = snapshot(*(epoch(n) for n in range(6)))
    rates = {(s.operator, s.number): (s.owner, s.rate) for s in found.slices}
    assert rates["count", 0] == (A, pytest.approx(15.0))
    assert rates["count", 3] == (B, 0.0)
    assert found.traffic == {("top", A, 2): pytest.approx(150.0), ("top", B, 2): pytest.approx(50.0)}


def test_a_metric_that_is_no_number_is_named() -> None:
    found = snapshot(*(epoch(n) for n in range(3)))
    broken = replace(found, sources=(Source("lines", float("nan")),))
    with pytest.raises(BadSnapshot, match=r"rate of source 'lines': expected a number that is not negative, got nan"):
        broken.check()

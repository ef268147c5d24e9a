"""The account of every epoch is there, once, wherever drivers end between the commit and the report."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import account_app
import pytest
from account_app import Ends, expected
from chaos_kit import ALL, drive

from springtide import faults
from springtide.blocks.fsck import Fsck
from springtide.blocks.store import LocalStore
from springtide.cli.verbs.fsck import LOGS
from springtide.cli.verbs.queries import summed
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.epoch_figures import figure
from springtide.metrics.report import EpochReport
from springtide.metrics.totals import Totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
POINTS = ("records.collected", "manifest.put", "manifest.after", "publish.before", "publish.after", "report.after")
"""From before the manifest to after the report, in their order."""


def told(report: EpochReport) -> Ends:
    """What a report says became of an epoch's rows."""
    (query,) = (query for query in report.queries if query.query == "counts")
    late = int(figure("late_rows", report) or 0)
    return Ends(report.rows_in, report.dead_letters, late, query.offered, query.processed)


def check(root: Path, epochs: int) -> list[EpochReport]:
    """The reports tell of every epoch what is true, and their sums count each once."""
    oracle = expected(epochs)
    assert Fsck(LocalStore(root / "checkpoint"), LOGS)().findings == ()
    reports = last_reports(LocalStore(root / "checkpoint"), ALL)
    assert {report.epoch for report in reports} == set(oracle)
    for report in reports:
        assert told(report) == oracle[report.epoch], report
        assert report.sources[0].rows_in == oracle[report.epoch].rows_in
    once = Counter(report.epoch for report in reports if report.counts)
    assert once == Counter(list(oracle)), "each epoch counts once"
    totals = Totals.of(reports)
    for name in ("rows_in", "dead_letters", "late_rows"):
        series = "rows_total" if name == "rows_in" else f"{name}_total"
        assert totals.count(series) == sum(getattr(ends, name) for ends in oracle.values()), name
    (counts,) = (query for query in summed(reports) if query.query == "counts")
    assert counts.offered == sum(ends.offered for ends in oracle.values())
    assert counts.dead_letters == sum(ends.dead_letters for ends in oracle.values())
    return reports


def test_epochs_that_are_published_again(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a driver leaves that fails at a point is what one leaves that is killed there."""
    account_app.write_inputs(tmp_path, 3)
    app = account_app.build(tmp_path)
    for failpoint in ("manifest.after=oserror@1", "report.after=oserror@2", ""):
        with monkeypatch.context() as armed:
            armed.setenv(faults.ENVIRONMENT, failpoint)
            options = {"checkpoint": str(tmp_path / "checkpoint"), "instances": 2, "until": "available"}
            if failpoint:
                with pytest.raises(OSError, match="failpoint"):
                    app.run(spark, **options)
            else:
                app.run(spark, **options)
    reports = check(tmp_path, 3)
    marks = [(r.epoch, r.replayed, r.untold) for r in reports]
    assert marks[1:] == [(1, True, True), (2, False, False), (2, True, False), (3, False, False)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_drivers_killed_at_every_point(tmp_path: Path) -> None:
    epochs = 2 * len(POINTS) + 1
    account_app.write_inputs(tmp_path, epochs)
    for number, point in enumerate(POINTS):
        ended = drive(tmp_path, f"{point}=kill@{2 * number + 1}", epochs=epochs, app=account_app)
        assert ended.killed, f"{point}: {ended}"
        assert point in ended.fired, f"{point}: {ended}"
        assert Fsck(LocalStore(tmp_path / "checkpoint"), LOGS)().findings == (), f"{point}: a crash damages nothing"
    ended = drive(tmp_path, "", epochs=epochs, app=account_app)
    assert ended.code == 0, str(ended)
    reports = check(tmp_path, epochs)
    assert sum(report.untold for report in reports) == 3, "committed, and the driver ended before its report"

"""What makes an epoch count exactly once: it is committed, then published, and never computed again once committed."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chaos_app import EPOCH_ROWS, spec
from chaos_kit import Site, head, listing, manifest_path
from chaos_oracle import expected, published

from springtide import App, agg, faults, sinks, sources
from springtide.blocks.errors import StoreFailed
from springtide.blocks.store import LocalStore
from springtide.engine.lifecycle.report_log import last_reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 3


@pytest.mark.slow
def test_crashes_on_one_epoch_one_after_the_other(site: Site) -> None:
    site.crash(EPOCHS, "records.collected=oserror@1")
    assert published(site.root).epochs() == {0}, "nothing is published before the commit"

    # Fault 20: the store refuses the manifest.
    with pytest.raises(StoreFailed, match=r"manifests/000000001\.json.*no space left.*start the app"):
        site.run(EPOCHS, failpoints="manifest.put=oserror@1")
    assert not manifest_path(site.checkpoint, 1).exists()
    assert published(site.root).epochs() == {0}

    site.crash(EPOCHS, "manifest.after=oserror@1")
    committed = head(site.checkpoint)
    assert committed is not None
    assert committed.epoch == 1
    assert published(site.root).epochs() == {0}

    site.crash(EPOCHS, "publish.after=oserror@1")
    assert published(site.root).epochs() == {0, 1}
    before = listing(site.checkpoint)
    site.crash(EPOCHS, "epoch.start=oserror@2")
    (report,) = last_reports(LocalStore(site.checkpoint), 1)
    assert (report.epoch, report.replayed, report.phases.compute_s) == (1, True, 0.0)
    assert report.rows_in == EPOCH_ROWS
    assert {step.step: step.rows_in for step in report.operators}["count"] > 0, "its account is in the manifest"
    assert not any(step.instances for step in report.operators), "and nothing was computed"
    after = listing(site.checkpoint)
    for directory in ("blocks", "manifests"):
        assert _in(directory, after) <= _in(directory, before), "a committed epoch is published again, and nothing else"
    assert head(site.checkpoint) == committed
    assert not published(site.root).beyond(expected(EPOCHS))

    # Fault 21: the manifest lands although its write seems to fail, and the same driver goes on.
    reports = site.run(EPOCHS + 1, failpoints="manifest.put=late-oserror@2")
    assert [r.epoch for r in reports if not r.replayed] == [2, 3]
    site.check(EPOCHS + 1)


def _in(directory: str, files: Iterable[str]) -> set[str]:
    return {path.name for path in map(Path, files) if path.parent.name == directory}


def test_steps_that_join_after_a_crash(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch committed without them is published without them; they start with the next one."""
    options = {"checkpoint": str(tmp_path), "until": "available"}
    counts, sums, raw = sinks.memory(), sinks.memory(), sinks.memory()

    def app(*, joined: bool) -> App:
        built = App("joined")
        rows = built.source("rows", sources.Generator(spec(EPOCHS)))
        rows.key_by("key").aggregate("count", n=agg.count()).sink("counts", counts)
        if joined:
            rows.key_by("key").aggregate("sum", total=agg.sum("id")).sink("sums", sums)
            rows.transform("only-ids", lambda df: df.select("id")).sink("raw", raw)
        return built

    with monkeypatch.context() as armed:
        armed.setenv(faults.ENVIRONMENT, "publish.before=oserror@1")
        with pytest.raises(OSError, match="failpoint"):
            app(joined=False).run(spark, **options)
    app(joined=True).run(spark, **options)
    assert sum({row["key"]: row["n"] for row in counts.rows()}.values()) == EPOCHS * EPOCH_ROWS
    assert list(counts.epochs) == [0, 1, 2]
    since = range(2 * EPOCH_ROWS, EPOCHS * EPOCH_ROWS)
    assert sorted(row["id"] for row in raw.rows()) == list(since)
    assert sum({row["key"]: row["total"] for row in sums.rows()}.values()) == sum(since)

"""What makes epochs exactly once: an epoch is committed, then published, and a committed one is never computed again."""

import pytest
from chaos_kit import Site, head, listing, manifest_path
from chaos_oracle import expected, published

from springtide.blocks.errors import StoreFailed

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 3


def test_nothing_is_published_before_the_commit(site: Site) -> None:
    site.crash(EPOCHS, "records.collected=oserror@1")
    assert published(site.root).epochs() == {0}
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_store_that_refuses_the_manifest_stops_the_app_and_commits_nothing(site: Site) -> None:
    """Fault 20."""
    with pytest.raises(StoreFailed, match=r"manifests/000000001\.json.*no space left.*not committed.*start the app again"):
        site.run(EPOCHS, failpoints="manifest.put=oserror@1")
    assert not manifest_path(site.checkpoint, 1).exists()
    assert published(site.root).epochs() == {0}
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_manifest_that_landed_although_its_write_failed_counts(site: Site) -> None:
    """Fault 21: the same driver goes on."""
    reports = site.run(EPOCHS, failpoints="manifest.put=late-oserror@1")
    assert [r.epoch for r in reports] == [0, 1, 2]
    site.check(EPOCHS)


def test_a_committed_epoch_is_only_published_again(site: Site) -> None:
    """After a crash between the manifest and Spark's log nothing is computed, stored or committed anew."""
    site.crash(EPOCHS, "publish.after=oserror@1")
    before, manifest = listing(site.checkpoint), head(site.checkpoint)
    (report,) = site.run(EPOCHS, until="epochs=1")
    assert (report.epoch, report.replayed, report.operators, report.phases.compute_s) == (1, True, (), 0.0)
    after = listing(site.checkpoint)
    for directory in ("blocks/", "manifests/"):
        assert {n for n in after if n.startswith(directory)} <= {n for n in before if n.startswith(directory)}
    assert head(site.checkpoint) == manifest
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_crash_before_the_sinks_publishes_what_was_committed(site: Site) -> None:
    site.crash(EPOCHS, "manifest.after=oserror@1")
    assert published(site.root).epochs() == {0}
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_replayed_epoch_reports_its_own_rows(site: Site) -> None:
    site.crash(EPOCHS, "publish.after=oserror@1")
    reports = site.run(EPOCHS)
    assert [(r.epoch, r.rows_in) for r in reports] == [(1, 150), (2, 150)]


def test_repeated_crashes_on_one_epoch_add_nothing(site: Site) -> None:
    for point in ("records.collected", "manifest.put", "manifest.after", "publish.after", "publish.after"):
        with pytest.raises(OSError, match="failpoint"):
            site.run(EPOCHS, failpoints=f"{point}=oserror@1")
        assert not published(site.root).beyond(expected(EPOCHS))
    site.run(EPOCHS)
    site.check(EPOCHS)

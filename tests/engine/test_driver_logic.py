"""What the driver computes without Spark: event time, state after an epoch, progress, endings, errors."""

import json
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from springtide import App, codec, sinks, sources
from springtide.blocks.block import BlockRef
from springtide.blocks.errors import LineageBroken
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.engine.durability.spark_log import align, entry, fit, fitted, giving_rows, offsets, planned_us
from springtide.engine.epoch.keyed_step import _advance
from springtide.engine.epoch.source_progress import Progress
from springtide.engine.lifecycle import report_log as reports
from springtide.engine.lifecycle.report_log import CHUNK, ReportLog, last_reports
from springtide.engine.lifecycle.stop_condition import Covered, StopCondition
from springtide.engine.wire.commit_record import CommitRecord, MapStats
from springtide.engine.wire.job_errors import explain
from springtide.ids import Epoch, PlanVersion
from springtide.metrics.report import EpochReport, Phases
from springtide.state.logic import Moment
from springtide.testing import ManualClock


def run(name: str, slices: str = "0-3") -> BlockRef:
    return BlockRef(name, "count", Epoch(1), 10, 100, 7, SliceSet.parse(slices))


def record(instance: int, new: BlockRef | None, *gone: str, added: int = 0, removed: int = 0) -> CommitRecord:
    mine = SliceSet.parse("0-1" if instance == 0 else "2-3")
    replaced = tuple((name, mine) for name in gone)
    return CommitRecord(instance, new, replaced, keys_added=added, keys_removed=removed)


def test_a_commit_record_survives_json() -> None:
    before = replace(record(1, run("a"), "x", added=3), stats=MapStats(5, 1, 0, (99,), 0.25))
    assert codec.loads(CommitRecord, codec.dumps(before)) == before


def test_instances_replace_runs_for_their_own_slices_only() -> None:
    state = OperatorState((run("old"), run("newer")), keys=10)
    records = [
        record(0, run("left", "0-1"), "old", "newer", added=2),
        record(1, run("right", "2-3"), "newer", removed=1),
    ]
    after = _advance(state, records, Moment(), MapStats(newest_us=(50,)))
    assert [(r.name, str(r.slices), r.partial) for r in after.runs] == [
        ("old", "2-3", True),
        ("left", "0-1", False),
        ("right", "2-3", False),
    ]
    assert (after.keys, after.newest_us, after.watermark_us) == (11, (50,), None)


def manifest(epoch: int, row: int) -> Manifest:
    offset = json.dumps({"row": row, "start_us": 1_000_000})
    return Manifest("app", Epoch(epoch), "", PlanVersion(1), 1, offsets=(offset,))


def test_progress_of_an_open_loop_source() -> None:
    app = App("app")
    app.source("rows", sources.generator(100.0, limit=1000)).sink("out", sinks.noop())
    clock = ManualClock(1.0 + 3.0)
    seen = Progress(app.graph(), clock).measure(manifest(1, 200), manifest(0, 50))
    assert (seen.rows_in, seen.lag_rows) == (150, 100)
    assert seen.latency_s == pytest.approx(1.0)


def test_progress_of_a_source_that_can_not_tell() -> None:
    app = App("app")
    app.source("rows", sources.files("in")).sink("out", sinks.noop())
    progress = Progress(app.graph(), ManualClock())
    counted = progress.measure(manifest(0, 1), None, {"rows": 12})
    assert (counted.rows_in, counted.lag_rows, counted.latency_s) == (12, None, None)
    published_again = progress.measure(manifest(0, 1), None)
    assert (published_again.rows_in, published_again.sources[0].rows_in) == (0, None)


def test_sources_gave_rows_whose_offsets_moved() -> None:
    assert giving_rows(("5", "-", "7"), ("6", "-", "7")) == (0,)
    assert giving_rows((), ("5", "-", "7")) == (0, 2), "nobody had given anything before the first epoch"


def test_what_was_read_counts_and_not_the_offsets() -> None:
    """A topic has offsets without a record: transactions end with one, and compaction leaves gaps."""
    app = App("app")
    app.source("rows", sources.generator(100.0, limit=1000)).sink("out", sinks.noop())
    seen = Progress(app.graph(), ManualClock(4.0)).measure(manifest(1, 200), manifest(0, 50), {"rows": 140})
    assert (seen.rows_in, seen.lag_rows) == (140, 100)


def report(epoch: int, rows: int = 0) -> EpochReport:
    return EpochReport("app", epoch, 0.0, 1, False, rows, 0, None, None, 0, Phases())


def test_reports_are_kept_in_order_and_in_chunks(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    log = ReportLog(store)
    for epoch in range(CHUNK + 3):
        log.append(report(epoch))
    assert [r.epoch for r in last_reports(store, 5)] == list(range(CHUNK - 2, CHUNK + 3))
    assert len(store.list("reports")) == 2


def test_old_reports_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "CHUNK", 4)
    store = LocalStore(tmp_path)
    log = ReportLog(store, keep=2)
    for epoch in range(21):
        log.append(report(epoch))
    assert len(store.list("reports")) == 3
    assert [r.epoch for r in last_reports(store, 10**6)] == list(range(12, 21)), "four times as many, or a few more"


def covered(*reports: EpochReport) -> Covered:
    return reduce(Covered.after, reports, Covered())


def test_endings() -> None:
    assert StopCondition.parse("available") == StopCondition(available=True)
    assert StopCondition.parse("epochs=2").reached(covered(report(0), report(1)))
    assert not StopCondition.parse("rows=10").reached(covered(report(0, 9)))
    assert StopCondition.parse("rows=10").reached(covered(report(0, 9), report(1, 1)))
    again = replace(report(0, 9), replayed=True)
    assert not StopCondition.parse("epochs=1").reached(covered(again))
    assert not StopCondition.parse("rows=9").reached(covered(again))
    assert StopCondition.parse("seconds=1.5").seconds == 1.5
    for text in ("", "rows", "rows=x", "available=1", "days=1"):
        with pytest.raises(ValueError, match="expected available, epochs=N"):
            StopCondition.parse(text)


def test_spark_repeats_the_epoch_after_the_last_committed_one(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for epoch in range(3):
        store.put(f"spark/commits/{epoch}", b"v1")
    store.put("spark/offsets/2", b'v1\n{}\n{"row": 5}\n-')
    assert offsets(entry(store, Epoch(2)), 2) == ('{"row": 5}', "-")
    assert offsets(entry(store, Epoch(9)), 2) == ()
    assert planned_us(entry(store, Epoch(2))) is None
    assert planned_us(entry(store, Epoch(9))) is None
    align(store, Epoch(2))
    assert store.list("spark/commits") == ["0", "1", "2"]
    align(store, Epoch(1))
    assert store.list("spark/commits") == ["0", "1"]
    with pytest.raises(LineageBroken, match="do not belong together"):
        align(store, None)


def test_the_log_gets_a_line_for_nudges_and_loses_it_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    before = b'v1\n{}\n{"row": 5}\n-'
    for epoch in range(3):
        store.put(f"spark/offsets/{epoch}", before)
        store.put(f"spark/offsets/.{epoch}.crc", b"of the text as it is")
    fit(store, 2, nudged=True)
    assert store.get("spark/offsets/2") == store.get("spark/offsets/1") == before + b"\n-"
    assert store.get("spark/offsets/0") == before, "Spark does not look at it"
    assert [path.name for path in tmp_path.glob("spark/offsets/.*.crc")] == [".0.crc"]
    assert offsets(entry(store, Epoch(2)), 2) == ('{"row": 5}', "-")
    store.put("spark/offsets/2", before + b'\n"17"')
    fit(store, 2, nudged=True)
    assert store.get("spark/offsets/2") == before + b'\n"17"'
    fit(store, 2, nudged=False)
    assert store.get("spark/offsets/2") == before


@pytest.mark.parametrize("sources", [1, 3, 4])
def test_the_log_of_another_number_of_sources_is_left_for_spark_to_refuse(sources: int) -> None:
    entry = 'v1\n{}\n{"row": 5}\n{"row": 6}\n{"row": 7}' if sources == 1 else 'v1\n{}\n{"row": 5}\n{"row": 6}'
    for nudged in (True, False):
        assert fitted(entry, sources, nudged=nudged) == entry
    assert fitted('v1\n{}\n{"row": 5}\n{"row": 6}', 1, nudged=False).endswith("6}"), "that is no nudge"


def test_an_epoch_without_input_does_not_count_for_the_end() -> None:
    some = EpochReport("app", 0, 0.0, 1, False, 5, 5, None, None, 0, Phases())
    none = replace(some, epoch=1, rows_in=0, without_input=True)
    assert not StopCondition(epochs=2).reached(covered(some, none))
    assert StopCondition(epochs=2).reached(covered(some, none, replace(some, epoch=2)))
    assert codec.loads(EpochReport, codec.dumps(none)) == none


def test_a_failed_job_names_the_step_and_shows_the_users_line() -> None:
    text = (
        "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
        '  File "/lib/pyspark/worker.py", line 1, in main\n    process()\n'
        '  File "/home/me/app.py", line 12, in reducer\n    return 1 / 0\n'
        "ZeroDivisionError: division by zero\n\nThe above exception was the direct cause\n"
        "springtide.dataflow.errors.StepFailed: step 'totals' failed while updating its state: "
        "ZeroDivisionError: division by zero\n\tat org.apache.spark\n"
    )
    failed = explain(PySparkException(text), "other")
    assert (failed.step, failed.doing) == ("totals", "updating its state")
    assert failed.reason == "ZeroDivisionError: division by zero"
    assert "/home/me/app.py:12 in reducer: return 1 / 0" in failed.hint
    assert explain(PySparkException("[CAST_INVALID_INPUT] no number\n\tat x"), "parse").step == "parse"

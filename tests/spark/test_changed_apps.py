"""An app, or a release, that a checkpoint does not fit: refused before anything is written."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chaos_kit import head, listing, manifest_path
from spark_kit import alive, generator

from springtide import App, agg, sinks
from springtide.blocks.errors import NewerFormat
from springtide.blocks.manifest import FORMAT, Manifest
from springtide.blocks.record import AppChanged
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]


def changed_apps() -> dict[str, tuple[str, Callable[[], App]]]:
    """Apps that differ from `original` in one thing that its state can't follow, and what the error names."""

    def app(
        *,
        slices: int = 16,
        name: str = "original",
        key: str = "key",
        cast: str = "BIGINT",
        step: str = "count",
        size: str = "5 seconds",
        dedupe: bool = False,
        **aggregates: Any,
    ) -> App:
        built = App(name, slices=slices)
        rows = built.source("rows", generator(3))
        typed = rows.transform("typed", lambda df: df.withColumn(key, df[key].cast(cast)))
        results = aggregates or {"n": agg.count(), "most": agg.max("value")}
        keyed = typed.key_by(key)
        (keyed.dedupe(step) if dedupe else keyed.aggregate(step, **results)).sink("counts", sinks.noop())
        keyed.window("event_time", size).aggregate("windows", n=agg.count()).sink("windows-out", sinks.noop())
        return built

    return {
        "original": ("", app),
        "slices": ("number of slices was 16 and is 32 now", lambda: app(slices=32)),
        "app": ("app's name was original and is other now", lambda: app(name="other")),
        "key": ("step 'count' does not fit .*: its key was key int64 and is id int64 now", lambda: app(key="id")),
        "key type": ("step 'count' .*: its key was key int64 and is key string now", lambda: app(cast="STRING")),
        "state type": (
            r"the result most was agg.max\('value'\) and is agg.max\('due_time'\) now",
            lambda: app(n=agg.count(), most=agg.max("due_time")),
        ),
        "state columns": (r"the result most = agg.max\('value'\) is gone", lambda: app(n=agg.count())),
        "kind": (r"step 'count' .*: it was aggregate\(...\) and is dedupe\(...\) now", lambda: app(dedupe=True)),
        "step": (
            "step 'count' .*: the app has no such step any more, but 'counts-2' is new. If you renamed it",
            lambda: app(step="counts-2"),
        ),
        "function": (
            r"the result most was agg.max\('value'\) and is agg.min\('value'\) now",
            lambda: app(n=agg.count(), most=agg.min("value")),
        ),
        "window": ("step 'windows' .*: its window was 5 seconds and is 7 seconds now", lambda: app(size="7 seconds")),
    }


def test_a_changed_app_is_refused_before_any_write(run_app: RunApp, spark: "SparkSession", tmp_path: Path) -> None:
    """Fault 28."""
    apps = changed_apps()
    _, original = apps.pop("original")
    checkpoint = tmp_path / "checkpoint"
    run_app(original(), checkpoint=str(checkpoint), until="epochs=1")
    before = listing(tmp_path)
    for what, (message, changed) in apps.items():
        with pytest.raises(AppChanged, match=message) as refused:
            run_app(changed(), checkpoint=str(checkpoint))
        assert "Nothing was written" in str(refused.value)
        assert listing(tmp_path) == before, what
    reports = run_app(original(), checkpoint=str(checkpoint))
    assert [report.epoch for report in reports if not report.replayed] == [1, 2]
    assert alive(spark)


def test_changed_sources_are_refused_before_any_write(run_app: RunApp, tmp_path: Path) -> None:
    """Fault 28: Spark's offsets go by the order of the sources, and would be given to the wrong ones."""

    def app(*names: str) -> App:
        built = App("sources")
        for name in names:
            built.source(name, generator(2)).sink(f"{name}-out", sinks.noop())
        return built

    run_app(app("a", "b"), checkpoint=str(tmp_path), until="epochs=1")
    before = listing(tmp_path)
    for names in (("b", "a"), ("a",), ("a", "b", "c"), ("a", "c")):
        with pytest.raises(AppChanged, match=r"order of its sources was \['a', 'b'\] and is \["):
            run_app(app(*names), checkpoint=str(tmp_path))
        assert listing(tmp_path) == before
    assert run_app(app("a", "b"), checkpoint=str(tmp_path))


def test_a_checkpoint_of_a_later_release_is_refused_before_any_write(run_app: RunApp, tmp_path: Path) -> None:
    """Fault 29: its record and its manifests."""
    app = App("later")
    app.source("rows", generator(2)).key_by("key").aggregate("count", n=agg.count()).sink("out", sinks.noop())
    run_app(app, checkpoint=str(tmp_path), until="epochs=1")

    record, last = tmp_path / "app.json", head(tmp_path)
    assert last is not None
    manifest = manifest_path(tmp_path, last.epoch)
    for path, newer in (
        (record, json.dumps({**json.loads(record.read_text()), "format": 99}).encode()),
        (manifest, _newer(last)),
    ):
        kept = path.read_bytes()
        path.write_bytes(newer)
        before = listing(tmp_path)
        with pytest.raises(NewerFormat, match=r"format 99, and this release reads up to [0-9]+:"):
            run_app(app, checkpoint=str(tmp_path))
        assert listing(tmp_path) == before
        path.write_bytes(kept)
    assert run_app(app, checkpoint=str(tmp_path))


def _newer(manifest: Manifest) -> bytes:
    body = manifest.encode().decode().split("\n")[0].replace(f'"format": {FORMAT}', '"format": 99')
    return f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n".encode()

"""Metrics for Prometheus: all of the catalogue, by its conventions."""

import re
from dataclasses import replace

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from springtide.control.api.prometheus import exposition
from springtide.ids import WorkerId
from springtide.metrics.catalogue import CATALOGUE, Counter, Gauge, Now
from springtide.metrics.report import (
    EpochReport,
    InstanceReport,
    OperatorReport,
    Phases,
    QueryReport,
    Sent,
    SourceReport,
)
from springtide.metrics.snapshot import MeasuredWorker, Snapshot
from springtide.metrics.totals import Totals

COUNT = OperatorReport(
    "count",
    80,
    8,
    late_rows=3,
    map_busy_s=0.5,
    state_rows=20,
    state_bytes=512,
    instances=(
        InstanceReport(0, process_s=1.0, cpu_s=0.75, worker="a", slice_rows=((0, 50),)),
        InstanceReport(1, process_s=0.5, cpu_s=0.25, worker="b", slice_rows=((1, 30),)),
    ),
    traffic=(Sent("a", 0, 100), Sent("a", 1, 40), Sent("b", 1, 7)),
)
EPOCH = EpochReport(
    "clicks",
    0,
    1_700_000_000.0,
    1,
    False,
    100,
    8,
    30,
    1.5,
    2,
    Phases(compute_s=0.5, publish_s=0.25),
    (COUNT,),
    1,
    (SourceReport("rows", 100, 30, 1.5),),
    (QueryReport("low", 100, 58, 40, 2, 0.6),),
)
AGAIN = replace(EPOCH, replayed=True, published_again=True, retries=2)
SNAPSHOT = Snapshot(
    0.0, 10.0, 5, (), (), (), (MeasuredWorker(WorkerId("a"), 1, 0.75, 30.0), MeasuredWorker(WorkerId("b"), 1))
)


def families(totals: Totals, now: Now) -> dict[str, Metric]:
    """By the full name, without what the format appends."""
    text = exposition("clicks", totals, now).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(family: Metric) -> dict[str, float]:
    """By the labels beside the app's, in one text."""
    found = {}
    for sample in family.samples:
        assert sample.labels.pop("app") == "clicks"
        found[" ".join([sample.name.removeprefix(family.name), *sample.labels.values()]).strip()] = sample.value
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Metric]:
    return families(Totals.of([EPOCH, EPOCH, AGAIN]), Now(2, EPOCH, SNAPSHOT))


def test_every_series_is_in_the_catalogue_and_every_one_of_the_catalogue_is_there(found: dict[str, Metric]) -> None:
    types = {f"springtide_{series.name.removesuffix('_total')}": series.kind for series in CATALOGUE}
    assert {name: family.type for name, family in found.items()} == types
    assert all(family.samples for family in found.values()), "the epoch has something for each"
    documented = {f"springtide_{s.name.removesuffix('_total')}": s for s in CATALOGUE}
    for name, family in found.items():
        series = documented[name]
        assert family.documentation == f"{series.meaning} Unit: {series.unit}. Counted by {series.counted}."
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == {"app", *series.labels}


def test_each_epoch_counts_once(found: dict[str, Metric]) -> None:
    """One that is published again adds only to what says so."""
    assert samples(found["springtide_rows"]) == {"_total": 200}
    assert samples(found["springtide_source_rows"]) == {"_total rows": 200}
    assert samples(found["springtide_output_rows"]) == {"_total": 16}
    assert samples(found["springtide_late_rows"]) == {"_total": 6}
    assert samples(found["springtide_dead_letters"]) == {"_total": 4}
    assert samples(found["springtide_shed_rows"]) == {"_total low": 80}
    assert samples(found["springtide_epochs"]) == {"_total": 2}
    assert samples(found["springtide_epochs_again"]) == {"_total": 1}
    assert samples(found["springtide_epoch_retries"]) == {"_total": 4}
    assert samples(found["springtide_step_busy_seconds"]) == {"_total count": 4.0}
    assert samples(found["springtide_step_cpu_seconds"]) == {"_total count": 2.0}
    assert samples(found["springtide_sent_bytes"]) == {"_total same_worker": 214, "_total cross_worker": 80}
    epochs = samples(found["springtide_epoch_seconds"])
    assert (epochs["_count"], epochs["_sum"]) == (2, 1.5)
    assert (epochs["_bucket 0.5"], epochs["_bucket 1.0"], epochs["_bucket +Inf"]) == (0, 2, 2)
    latency = samples(found["springtide_latency_seconds"])
    assert (latency["_count"], latency["_sum"]) == (2, 3.0)
    phases = samples(found["springtide_epoch_phase_seconds"])
    assert (phases["_sum compute"], phases["_sum publish"], phases["_sum plan"]) == (1.0, 0.5, 0.0)


def test_gauges_tell_of_the_last_epoch(found: dict[str, Metric]) -> None:
    assert samples(found["springtide_lag_rows"]) == {"rows": 30}
    assert samples(found["springtide_state_bytes"]) == {"count": 512}
    assert samples(found["springtide_accuracy_ratio"]) == {"low": 0.6}
    assert samples(found["springtide_last_epoch_timestamp_seconds"]) == {"": 1_700_000_000.0}
    assert samples(found["springtide_workers"]) == {"": 2}
    assert samples(found["springtide_worker_cpu_ratio"]) == {"a": 0.75, "b": 0.0}


def test_before_the_first_epoch_counters_are_at_zero() -> None:
    found = families(Totals(), Now(3))
    assert samples(found["springtide_rows"]) == {"_total": 0}
    assert samples(found["springtide_epoch_seconds"])["_count"] == 0
    assert samples(found["springtide_workers"]) == {"": 3}
    assert not found["springtide_lag_rows"].samples


def test_a_lag_that_is_not_known_is_left_out() -> None:
    unknown = replace(EPOCH, lag_rows=None, latency_s=None, sources=(SourceReport("rows", 100),))
    found = families(Totals.of([unknown]), Now(1, unknown))
    assert not found["springtide_lag_rows"].samples
    assert samples(found["springtide_latency_seconds"])["_count"] == 0


def test_the_catalogue_keeps_to_prometheus_conventions() -> None:
    names = [series.name for series in CATALOGUE]
    assert len(names) == len(set(names))
    for series in CATALOGUE:
        assert re.fullmatch("[a-z_]+", series.name)
        assert series.name.endswith("_total") == isinstance(series, Counter), series.name
        assert series.meaning.endswith(".")
        assert series.unit
        assert series.counted
        assert not {"instance", "job", "le", "quantile"} & set(series.labels), "Prometheus' own labels"
        assert len(series.labels) <= 1, "one series a step, a source, a query or a worker; never a product of them"
        assert (series.unit == "s") == ("seconds" in series.name), "base units, and in the name"
        assert (series.unit == "0 to 1") == series.name.endswith("_ratio")
        assert (series.unit == "bytes") == ("bytes" in series.name)
        assert not isinstance(series, Gauge) or "per_second" not in series.name, "rates are for who reads counters"

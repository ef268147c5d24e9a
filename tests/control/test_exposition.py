"""Metrics for Prometheus: all of the catalogue, with units and labels."""

from prometheus_client.parser import text_string_to_metric_families

from springtide.control.exposition import exposition
from springtide.ids import SliceId, WorkerId
from springtide.metrics.catalogue import CATALOGUE
from springtide.metrics.snapshot import Edge, Instance, Slice, Snapshot, Source, Worker

A, B = WorkerId("a"), WorkerId("b")
SNAPSHOT = Snapshot(
    0.0, 10.0, 5, (Source("rows", 120.0, 30.0, 1.5),), (Edge("rows", "count"),),
    (Instance("count", 0, A, 4.0, 800.0, 80.0, 30.0, 2.0, 512),), (Worker(A, 1, 0.7, 30.0), Worker(B, 1)),
    (Slice("count", SliceId(0), A, 80.0), Slice("top", SliceId(3), B, 8.0)),
    {("top", A, SliceId(3)): 100.0, ("top", B, SliceId(3)): 40.0},
)  # fmt: skip


def test_every_metric_is_there_and_can_be_parsed() -> None:
    families = {f.name: f for f in text_string_to_metric_families(exposition("clicks", SNAPSHOT).decode())}
    assert set(families) == {f"springtide_{metric.name}" for metric in CATALOGUE}
    (rate,) = families["springtide_true_rate"].samples
    assert (rate.labels, rate.value) == ({"app": "clicks", "operator": "count", "instance": "0", "worker": "a"}, 200.0)
    ways = {s.labels["way"]: s.value for s in families["springtide_traffic_rate"].samples}
    assert ways == {"cross_worker": 100.0, "same_worker": 40.0}
    assert "Unit: rows/s" in families["springtide_records_in_rate"].documentation


def test_before_the_first_epochs_there_is_nothing() -> None:
    assert exposition("clicks", None) == b""


def test_names_are_given_once() -> None:
    names = [metric.name for metric in CATALOGUE]
    assert len(names) == len(set(names))
    assert all(metric.unit and metric.meaning.endswith(".") and metric.measured_by for metric in CATALOGUE)

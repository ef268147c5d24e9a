"""Metrics for Prometheus: the catalogue in its text format."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from springtide.metrics.catalogue import CATALOGUE
from springtide.metrics.snapshot import Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Snapshot(Collector):
    def __init__(self, app: str, snapshot: Snapshot) -> None:
        self.app, self.snapshot = app, snapshot

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for metric in CATALOGUE:
            text = f"{metric.meaning} Unit: {metric.unit}. Measured by {metric.measured_by}."
            family = GaugeMetricFamily(f"springtide_{metric.name}", text, labels=["app", *metric.labels])
            for labels, value in metric.read(self.snapshot):
                family.add_metric([self.app, *labels], value)
            yield family


def exposition(app: str, snapshot: Snapshot | None) -> bytes:
    """All metrics of an app; none before its first epochs."""
    registry = CollectorRegistry()
    if snapshot is not None:
        registry.register(_Snapshot(app, snapshot))
    return generate_latest(registry)

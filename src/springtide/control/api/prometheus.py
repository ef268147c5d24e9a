"""Metrics for Prometheus: the catalogue in its text format."""

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from springtide.metrics.catalogue import BUCKETS_S, CATALOGUE, Counter, Gauge, Labels, Now, Series
from springtide.metrics.totals import Spread, Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "springtide_"

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class _App(Collector):
    def __init__(self, app: str, totals: Totals, now: Now) -> None:
        self.app, self.totals, self.now = app, totals, now

    def collect(self) -> Iterable[Family]:
        return map(self._family, CATALOGUE)

    def _family(self, series: Series) -> Family:
        told = f"{series.meaning} Unit: {series.unit}. Counted by {series.counted}."
        name, labels = PREFIX + series.name, ["app", *series.labels]
        if isinstance(series, Gauge):
            gauge = GaugeMetricFamily(name, told, labels=labels)
            for values, value in series.of(self.now):
                gauge.add_metric([self.app, *values], value)
            return gauge
        # A series without labels is there from the start, so that its first epoch shows as growth.
        start: list[Labels] = [] if series.labels else [()]
        if isinstance(series, Counter):
            counter = CounterMetricFamily(name, told, labels=labels)
            for values, value in {**dict.fromkeys(start, 0.0), **self.totals.sums.get(series.name, {})}.items():
                counter.add_metric([self.app, *values], value)
            return counter
        histogram = HistogramMetricFamily(name, told, labels=labels)
        spreads = {**dict.fromkeys(start, Spread()), **self.totals.spreads.get(series.name, {})}
        for values, spread in spreads.items():
            histogram.add_metric([self.app, *values], _buckets(spread), spread.sum_s)
        return histogram


def _buckets(spread: Spread) -> list[tuple[str, float]]:
    """Each bucket's upper bound, and how many were not above it."""
    bounds = [*map(floatToGoString, BUCKETS_S), "+Inf"]
    return list(zip(bounds, accumulate(spread.counts), strict=True))


def exposition(app: str, totals: Totals, now: Now) -> bytes:
    """All metrics of an app."""
    registry = CollectorRegistry()
    registry.register(_App(app, totals, now))
    return generate_latest(registry)

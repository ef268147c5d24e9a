"""The examples that read Kafka, on a real broker, against oracles in plain Python."""

import math
import runpy
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from springtide import sinks
from springtide.dataflow.graph import Sink
from springtide.metrics.report import EpochReport
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume
from springtide.workloads import knn, taxi

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parents[2] / "examples"
RunApp = Callable[..., list[EpochReport]]
ROWS = 150


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


def latest(sink: sinks.Memory, key: str) -> dict[Any, dict[str, Any]]:
    return {row[key]: row for row in sink.rows()}


def test_taxi_drives(run_app: RunApp, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = example("taxi_data")["inject"](broker.servers, example("taxi_data")["TAXI"], 1000.0, ROWS / 1000)
    assert sent == {"hailed": ROWS, "booked": ROWS}
    assert len(consume(broker.servers, "hailed")) == ROWS
    monkeypatch.setenv("SPRINGTIDE_KAFKA", broker.servers)
    speeds, zones = sinks.memory(), sinks.memory()
    reports = run_app(example("taxi_drives")["build"](None, None, speeds, zones, detail=1))

    assert sum(report.rows_in for report in reports) == 2 * ROWS
    assert {(q.query, q.minimum_accuracy) for q in reports[0].queries} == {("speeds", 0.4), ("zones", 0.6)}
    drives = [taxi.drive(n, seed) for seed in (1, 2) for n in range(ROWS)]
    city, of = taxi.City(detail=1), defaultdict(list)
    for drive in drives:
        of[drive["taxi"]].append(drive)
    found = latest(speeds, "taxi")
    assert {t: row["drives"] for t, row in found.items()} == {t: len(some) for t, some in of.items()}
    for number, some in of.items():
        km = 0.0
        for drive in some:
            begin, end = city.on_street(drive["x0"], drive["y0"]), city.on_street(drive["x1"], drive["y1"])
            km += abs(begin[0] - end[0]) + abs(begin[1] - end[1])
        assert found[number]["km_h"] == pytest.approx(km / sum(d["seconds"] for d in some) * 3600)
    crossed = Counter(d["taxi"] for d in drives if city.zone(d["x0"], d["y0"]) != city.zone(d["x1"], d["y1"]))
    assert {t: row["crossings"] for t, row in latest(zones, "taxi").items()} == {t: crossed[t] for t in of}


def test_knn(run_app: RunApp, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    example("taxi_data")["inject"](broker.servers, example("taxi_data")["KNN"], 1000.0, 2 * ROWS / 1000)
    monkeypatch.setenv("SPRINGTIDE_KAFKA", broker.servers)
    sink = sinks.memory()
    run_app(example("knn")["build"](None, sink, k=3, reference=200))

    readings = [knn.reading(n) for n in range(2 * ROWS)]
    known = knn._reference(200, knn.SEED).tolist()

    def unusual(point: list[float]) -> bool:
        nearest = sorted(math.dist(point, other) for other in known)[:3]
        return sum(nearest) / 3 > knn.Neighbours.usual

    expected = Counter(r["sensor"] for r in readings if unusual(r["p"]))
    assert 0 < sum(expected.values()) < ROWS
    count = Counter(r["sensor"] for r in readings)
    found = {s: (row["readings"], row["unusual"]) for s, row in latest(sink, "sensor").items()}
    assert found == {s: (count[s], expected[s]) for s in count}


def test_priorities_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZONES_PRIORITY", "5")
    graph = example("taxi_drives")["app"].graph()
    assert {sink.name: sink.restrictions.priority for sink in graph.of(Sink)} == {"speeds": 0, "zones": 5}


def test_a_point_is_brought_to_the_nearest_street_and_found_in_its_zone() -> None:
    """Against one street and one border at a time."""
    city = taxi.City(detail=1)
    ax, ay, dx, dy, _ = taxi._streets(city)
    x0, y0, y1, slope = taxi._borders(city)
    for number in range(40):
        drive = taxi.drive(number)
        x, y = drive["x0"], drive["y0"]
        best = min(
            math.dist((x, y), (a + t / 200 * c, b + t / 200 * d))
            for a, b, c, d in zip(ax, ay, dx, dy, strict=True)
            if abs(a - x) + abs(b - y) < 3
            for t in range(201)
        )
        assert math.dist((x, y), city.on_street(x, y)) == pytest.approx(best, abs=0.004)
        inside = [
            zone
            for zone in range(taxi.ZONES)
            if sum(
                (b > y) != (d > y) and x < a + (y - b) * m
                for a, b, d, m in zip(x0[zone], y0[zone], y1[zone], slope[zone], strict=True)
            )
            % 2
        ]
        assert city.zone(x, y) == (inside[0] if inside else -1)

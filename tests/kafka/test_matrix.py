"""Every source, embedded and on workers, for each way with malformed records, with and without shedding.

One embedded session and one with two workers run many tiny apps.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import matrix_kit
import pytest
from matrix_kit import ALL, PARSED, Bench, Case, Outcome, check

from springtide.testing.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EMBEDDED = [
    Case(ALL),
    Case(("kafka_json", "json_files", "csv_files"), share=0.5),
    Case(("kafka_json",)),
    Case(("kafka_json",), "topic"),
    Case(("csv_files",), "fail"),
]
WORKERS = [
    Case(("kafka_json",)),
    Case(ALL, flaky=True),
    Case(("kafka_json", "json_files"), "topic", share=0.5),
    Case(("json_files",), "fail"),
]
EACH = [
    Case((name,), malformed, share)
    for name in ALL
    for malformed in ("count", "fail", "topic")
    for share in (None, 1.0, 0.5)
    if malformed == "count" or (malformed == "fail" and name in PARSED) or name == "kafka_json"
]
A_CASE_S, START_S = 60.0, 120.0


@pytest.mark.parametrize("case", EMBEDDED, ids=str)
def test_embedded(case: Case, spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    check(case, Bench(spark, broker.servers, tmp_path).run(case))


def test_on_workers(broker: Broker, tmp_path: Path) -> None:
    for case, found in zip(WORKERS, on_workers(broker, tmp_path, WORKERS), strict=True):
        check(case, found)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", EACH, ids=str)
def test_each_embedded(case: Case, spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    check(case, Bench(spark, broker.servers, tmp_path).run(case))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_each_on_workers(broker: Broker, tmp_path: Path) -> None:
    for case, found in zip(EACH, on_workers(broker, tmp_path, EACH), strict=True):
        check(case, found)


def on_workers(broker: Broker, root: Path, cases: Sequence[Case]) -> list[Outcome]:
    """Cases on two workers, in a process of their own: there is one Spark a process."""
    command = [
        sys.executable,
        matrix_kit.__file__,
        broker.servers,
        str(root),
        json.dumps([asdict(case) for case in cases]),
    ]
    with open(root / "log", "wb") as log:
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=START_S + A_CASE_S * len(cases)
        ).returncode
    assert code == 0, (root / "log").read_text(errors="replace")[-4000:]
    return [Outcome(**json.loads((root / f"{number}.json").read_text())) for number in range(len(cases))]

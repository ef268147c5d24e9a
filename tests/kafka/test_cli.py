"""`springtide run --kafka` and the example that goes with it, as a person uses them."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from springtide.cli.shared.local_broker import PLACE as TOPICS
from springtide.connectors.kafka.jars import PLACE, place
from springtide.testing.kafka import Broker
from springtide.testing.topics import consume

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders.py"


def springtide(cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from springtide.cli.entry import main; main()", *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", PLACE: str(place()), **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_runs_with_a_broker_of_its_own_and_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        done = springtide(tmp_path, "run", str(EXAMPLE), "--kafka", "--until", "epochs=2", "--quiet")
        assert done.returncode == 0, done.stdout + done.stderr
    with Broker(tmp_path / TOPICS) as broker:
        orders = [json.loads(record.value or b"") for record in consume(broker.servers, "orders")]
        totals = [json.loads(record.value or b"") for record in consume(broker.servers, "totals")]
    made = Counter(row["user"] for row in orders)
    assert orders
    assert totals
    for row in totals:
        assert 0 < row["orders"] <= made[row["user"]]
    assert len({(row["user"], row["orders"]) for row in totals}) == len(totals), "no total twice"


def test_without_jars_the_message_says_what_to_do(tmp_path: Path) -> None:
    failed = springtide(tmp_path, "run", str(EXAMPLE), "--kafka", **{PLACE: str(tmp_path / "nothing")})
    assert failed.returncode == 1
    assert "springtide kafka fetch" in failed.stderr
    assert "Traceback" not in failed.stderr

"""The same app on a real Spark cluster: it gets the workers that it asked for, grows, heals and shrinks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from chaos_app import FAST_START
from cluster_kit import one_owner, succeeded
from standalone import OnStandalone, Standalone
from waiting import wait_until

import springtide
from springtide.control.api.protocol import Refused
from springtide.migration.strategies import DEFAULT

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
GONE_S = 30.0
COMMAND_S = 400.0
START = "from springtide.cli.entry import main; main()"
APP = """
from louder import louder
from springtide import App, agg, sinks, sources

app = App("plain", slices=8)
rows = app.source("rows", sources.generator(1000, keys=7, limit=300, start_s=0.0, max_rows_per_epoch=100))
words = rows.map_batches("louder", louder, {"word": str})
words.key_by("word").aggregate("count", n=agg.count()).sink("out", sinks.parquet("out"))
"""
BESIDE = """
import pyarrow as pa

def louder(rows):
    return pa.table({"word": [f"KEY {key}" for key in rows["key"].to_pylist()]})
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone"), daemons=3) as cluster:
        yield cluster


def test_it_grows_heals_and_shrinks(spark: Standalone, tmp_path: Path) -> None:
    with OnStandalone(spark, tmp_path, workers=2) as cluster:
        assert set(spark.executors()) == set(cluster.workers()), "two were asked for, and there was room for three"
        assert spark.shares() == [1, 1, 0]

        cluster.client.scale(3, DEFAULT)
        assert succeeded(cluster.migrated()), cluster.story()
        cluster.settled(3)
        assert spark.shares() == [1, 1, 1]

        cluster.backed_up()
        cluster.mid_epoch()
        cluster.kill(cluster.workers()[0])
        cluster.settled(3)
        assert set(spark.executors()) == set(cluster.workers())

        with pytest.raises(Refused, match=r"9 workers asked for; the cluster \(\d machines, .*\) carries at most \d: "):
            cluster.client.scale(9, DEFAULT)

        cluster.client.scale(2, DEFAULT)
        assert succeeded(cluster.migrated()), cluster.story()
        cluster.settled(2)
        cluster.until("the third to be let go", lambda: set(spark.executors()) == set(cluster.workers()))

        # A growth is called off: who comes late, though nobody waits any more, does not stay.
        cluster.client.scale(3, DEFAULT)
        cluster.until("an executor on its way", lambda: len(spark.executors()) == 3)
        cluster.client.cancel()
        cluster.until("it to go", lambda: set(spark.executors()) == set(cluster.workers()))
        cluster.settled(2)

        # A whole machine is lost; the replacement comes on another.
        cluster.backed_up()
        victim = cluster.workers()[1]
        spark.lose_daemon_of(victim)
        cluster.gone(victim)
        cluster.settled(2)
        assert set(spark.executors()) == set(cluster.workers())
        assert one_owner(cluster)
        cluster.finish()
    wait_until("the executors to end", lambda: not spark.executors(), GONE_S)


def test_the_command_brings_all_that_workers_need(spark: Standalone, tmp_path: Path) -> None:
    """What lies beside the app is found, and the workers' files, in a temporary place, are gone afterwards."""
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "louder.py").write_text(BESIDE)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    source = Path(springtide.__file__).parents[1]
    command = [
        sys.executable,
        "-c",
        START,
        "run",
        "app.py",
        "--workers",
        "2",
        "--master",
        spark.master,
        "--until",
        "rows=300",
        "--conf",
        f"spark.executor.extraJavaOptions={FAST_START}",
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=COMMAND_S)
    assert done.returncode == 0, done.stdout + done.stderr
    counts: dict[str, int] = {}
    for row in sorted(pq.read_table(tmp_path / "out").to_pylist(), key=lambda row: row["epoch"]):
        counts[row["word"]] = row["n"]
    assert sum(counts.values()) == 300
    assert all(word.startswith("KEY ") for word in counts)
    wait_until("the executors to end", lambda: not spark.executors(), GONE_S)
    assert not list(temporary.glob("springtide-plain-*"))

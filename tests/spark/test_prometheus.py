"""A real Prometheus scrapes an app on workers, and knows what the app knows."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_kit import check_metrics, programs, prometheus
from waiting import wait_until

import springtide
from springtide.blocks.store import LocalStore
from springtide.control.api.address import Address, NotRunning
from springtide.control.api.client import ControlClient
from springtide.engine.lifecycle.report_log import last_reports
from springtide.metrics.catalogue import CATALOGUE
from springtide.metrics.epoch_figures import figures
from springtide.metrics.totals import Totals

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
START_S = 150.0
PATIENCE_S = 90.0
ROWS = {"left": 300, "right": 170}
KEPT = 10
"""One row in this many passes the filters."""
APP = f"""
from springtide import App, agg, sinks, sources

app = App("scraped")
for side in {tuple(ROWS)}:
    rows = app.source(side, sources.files(side, format="parquet", schema="n BIGINT"))
    few = rows.transform(f"few_{{side}}", lambda frame: frame.filter("n % {KEPT} = 0"))
    few.key_by("n").aggregate(f"count_{{side}}", c=agg.count()).sink(f"out_{{side}}", sinks.noop())
"""


def give(root: Path, name: str) -> None:
    """Another file of numbers for each source; it appears whole."""
    for side, count in ROWS.items():
        pq.write_table(pa.table({"n": pa.array(range(count), pa.int64())}), root / f"{side}-{name}")
        (root / f"{side}-{name}").rename(root / side / f"{name}.parquet")


@contextmanager
def running(root: Path) -> Iterator[Address]:
    """The app on two workers, in a process of its own; its address once it answers."""
    (root / "app.py").write_text(APP)
    for side in ROWS:
        (root / side).mkdir()
    source = Path(springtide.__file__).parents[1]
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-c",
        "from springtide.cli.entry import main; main()",
        "run",
        "app.py",
        "--workers",
        "2",
        "--checkpoint",
        "checkpoint",
        "--conf",
        "spark.driver.memory=1g",
    ]
    log = root / "app.log"

    def find() -> Address | None:
        assert process.poll() is None, log.read_text()
        try:
            return Address.read(root / "checkpoint")
        except NotRunning:
            return None

    with (
        open(log, "wb") as out,
        subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": path}, stdout=out, stderr=out) as process,
    ):
        try:
            yield wait_until("the app", find, START_S, log.read_text)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()


def test_prometheus_knows_the_rows_that_the_sources_gave(tmp_path: Path) -> None:
    programs()
    with running(tmp_path) as address, prometheus(address, tmp_path / "prometheus") as server:
        wait_until("a scrape before the first epoch", lambda: server.ask("springtide_rows_total"), PATIENCE_S)
        assert server.ask("springtide_rows_total") == {"app=scraped": 0}
        client = ControlClient(address, tmp_path / "checkpoint")
        for number in (1, 2):
            give(tmp_path, str(number))
            rows = number * sum(ROWS.values())
            query = f"springtide_rows_total == {rows}"
            wait_until(
                f"{rows} rows",
                lambda query=query: server.ask(query),
                PATIENCE_S,
                lambda: client.metrics().decode() + (tmp_path / "app.log").read_text(),
            )
        by_source = {f"app=scraped source={side}": 2 * count for side, count in ROWS.items()}
        assert server.ask("springtide_source_rows_total") == by_source
        kept = {f"app=scraped step=count_{side}": 2 * -(-count // KEPT) for side, count in ROWS.items()}
        assert server.ask("springtide_step_rows_total") == kept, "rows in are counted before the filters"
        text, told = client.metrics(), client.status()
        reports = last_reports(LocalStore(tmp_path / "checkpoint"), 100)
        epochs = server.ask("springtide_epochs_total")

    assert sum(report.rows_in for report in reports) == 2 * sum(ROWS.values())
    assert {name: told[name] for name in figures(reports[-1])} == figures(reports[-1])
    assert epochs == {"app=scraped": len(reports)}
    totals = Totals.of(reports)
    exported = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert set(exported) == {f"springtide_{series.name.removesuffix('_total')}" for series in CATALOGUE}
    for name in ("rows", "output_rows", "late_rows", "dead_letters", "epochs", "step_rows"):
        found = sum(sample.value for sample in exported[f"springtide_{name}"].samples)
        assert found == totals.count(f"{name}_total"), name
    assert check_metrics(text) == ""

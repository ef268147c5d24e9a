"""Every query of the auction on Spark, epoch by epoch, against SQL over all events at once."""

from pathlib import Path

import pyarrow as pa
import pytest
from operators_kit import RunApp

from springtide import sinks
from springtide.workloads.nexmark import files
from springtide.workloads.nexmark.oracle import Oracle
from springtide.workloads.nexmark.queries.catalogue import CATALOGUE, Query
from springtide.workloads.nexmark.queries.q10 import log
from springtide.workloads.nexmark.run import build

pytestmark = pytest.mark.spark
PARTS = 6


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Fifty seconds of events: windows close, sessions end, and the day changes."""
    return Oracle(files.write(tmp_path_factory.mktemp("auction"), 20_000, seed=3, parts=PARTS, events_s=400))


@pytest.mark.parametrize("query", CATALOGUE.values(), ids=lambda query: query.name)
def test_a_query_gives_what_sql_gives_over_all_events(query: Query, oracle: Oracle, run_app: RunApp) -> None:
    sink = sinks.memory()
    reports = run_app(build(query, oracle.directory, sink))
    assert sum(not report.without_input for report in reports) == PARTS
    rows = pa.concat_tables([table for _, table in sorted(sink.epochs.items()) if table.num_rows])
    found = oracle.difference(query, rows)
    assert found.rows > 0
    assert found.equal, found


def test_bids_are_logged_in_directories_of_their_minute(oracle: Oracle, run_app: RunApp, tmp_path: Path) -> None:
    query, place = CATALOGUE["q10"], tmp_path / "log"
    run_app(build(query, oracle.directory, log(str(place))))
    assert {path.parent.name for path in place.rglob("*.parquet")} == {"hm=23%3A59", "hm=00%3A00"}
    pattern = place / "*" / "*" / "*" / "*.parquet"
    kinds = "{'dt': VARCHAR, 'hm': VARCHAR}"
    written = oracle.database.sql(
        f"SELECT {', '.join(oracle.answer(query).column_names)} "
        f"FROM read_parquet('{pattern}', hive_partitioning = true, hive_types = {kinds})"
    )
    assert oracle.difference(query, written.to_arrow_table()).equal

"""What the engine relies on in Spark without a promise from Spark: fails when a release changes it."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType
from spark_hash import hash_bytes, hash_int, hash_long, signed
from waiting import wait_until

from springtide import App, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.engine.durability.spark_log import done, entries, entry, feed, fit, offsets, planned_us
from springtide.engine.spark.internals import (
    QUICK_LOCAL_LOGS,
    Executors,
    Nudges,
    Placement,
    arrow_schema,
    by_number,
    executor_place,
    file_system_fault,
    hadoop_version,
    in_batches,
    jvm_pid,
    live_heap_bytes,
    map_in_arrow,
    pickled_by_value,
    select,
    silent_log,
    spark_schema,
    worker_python,
)
from springtide.engine.spark.session import EPOCH_SETTINGS, log_settings
from springtide.engine.worker.task_context import WORKER_PROPERTY
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]


def test_schemas_survive_the_way_to_spark_and_back() -> None:
    schema = pa.schema(
        [
            ("flag", pa.bool_()),
            ("int", pa.int32()),
            ("long", pa.int64()),
            ("float", pa.float32()),
            ("double", pa.float64()),
            ("text", pa.string()),
            ("bytes", pa.binary()),
            ("day", pa.date32()),
            ("money", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("list", pa.list_(pa.int64())),
            ("wall", pa.timestamp("us")),
        ]
    )
    back = arrow_schema(spark_schema(schema))
    assert back.names == schema.names
    assert back.types == schema.types


def test_logs_on_a_local_disk_are_written_the_quick_way(spark: "SparkSession", tmp_path: Path) -> None:
    """Those of the query and those of its sources; the session is as it was."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json").write_text('{"n": 1}')
    (setting,) = QUICK_LOCAL_LOGS
    app = App("logs")
    app.source("rows", sources.files(str(tmp_path / "in"), format="json", schema="n BIGINT")).sink("out", sinks.noop())
    running = app.start(spark, checkpoint=str(tmp_path / "checkpoint"), until="available")
    try:
        execution: Any = running.query._jsq.streamingQuery()
        logs = [execution.offsetLog(), execution.commitLog(), execution.sources().apply(0).metadataLog()]
        assert {log.fileManager().getClass().getName() for log in logs} == {QUICK_LOCAL_LOGS[setting]}
        running.wait(60)
    finally:
        running.stop()
    assert spark.conf.get(setting, None) != QUICK_LOCAL_LOGS[setting]
    with log_settings(spark, "s3a://bucket/checkpoint", 10):
        assert spark.conf.get(setting, None) != QUICK_LOCAL_LOGS[setting]


def test_python_workers_are_forked_with_all_loaded(spark: "SparkSession") -> None:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            daemon = Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")
            yield pa.RecordBatch.from_pydict({"daemon": [daemon[daemon.index("-m") + 1]]})

    found = spark.range(0, 1, 1, 1).mapInArrow(task, "daemon STRING").collect()
    assert [row.daemon for row in found] == ["springtide.engine.worker.daemon"]


def test_a_row_goes_to_the_partition_of_its_number(spark: "SparkSession") -> None:
    """A number beyond the partitions wraps around, and every partition is there, also the empty ones."""
    numbers = spark.createDataFrame([(i,) for i in (-1, 0, 1, 2, 5, 6, 7, 13)], "id INT")

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        ids = [i for batch in batches for i in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_pydict({"partition": [context.partitionId()], "ids": [sorted(ids)]})

    placed = numbers.repartitionById(6, "id").mapInArrow(task, "partition BIGINT, ids ARRAY<BIGINT>").collect()
    assert {row["partition"]: row["ids"] for row in placed} == {
        0: [0, 6],
        1: [1, 7, 13],
        2: [2],
        3: [],
        4: [],
        5: [-1, 5],
    }


def test_a_range_has_its_numbers_in_order_one_a_partition(spark: "SparkSession") -> None:
    """A step's blocks are read by number, one task a block."""
    assert spark.range(0, 3, 1, 3).rdd.glom().map(lambda rows: [row.id for row in rows]).collect() == [[0], [1], [2]]


KNOWN_HASHES = {
    "'Spark', array(123), 2": 5602566077635097486,
    "'Spark'": -4294468057691064905,
    "''": -7444071767201028348,
    "'日本語'": -619341062884681239,
    "CAST(NULL AS STRING)": 42,
    "true": -6698625589789238999,
    "CAST('NaN' AS DOUBLE)": -3127944061524951246,
    "0.0D": -5252525462095825812,
    "CAST(1.5 AS FLOAT)": 6163473420726370430,
    "X'00FF'": 879945414100663330,
    "DATE'2024-05-01'": -5171775029671272704,
    "TIMESTAMP'2024-05-01 12:00:00 UTC'": 2099166426159197578,
    "7L, 'a'": 2701516948731497016,
    "7L": signed(hash_long(7)),
    "'a topic of a Kafka broker', 7, 7L": signed(hash_long(7, hash_int(7, hash_bytes(b"a topic of a Kafka broker")))),
}
"""The first one stands in Spark's documentation."""


def test_the_hash_of_a_key_is_what_it_was(spark: "SparkSession") -> None:
    """The slices of every checkpoint depend on it."""
    (row,) = spark.range(1).select(*[F.expr(f"xxhash64({values})") for values in KNOWN_HASHES]).collect()
    assert dict(zip(KNOWN_HASHES, row, strict=True)) == KNOWN_HASHES


def test_epochs_run_in_a_session_of_their_own(spark: "SparkSession", run_app: RunApp) -> None:
    """The settings our jobs need hold in every epoch, and never reach the user's session."""
    before = {key: spark.conf.get(key) for key in EPOCH_SETTINGS}
    assert before != EPOCH_SETTINGS
    seen: list[tuple[bool, dict[str, Any]]] = []

    def look(frame: "DataFrame", epoch: int) -> None:
        session = frame.sparkSession
        settings = {key: session.conf.get(key) for key in EPOCH_SETTINGS}
        seen.append((session._jsparkSession.equals(spark._jsparkSession), settings))

    app = App("session")
    rows = app.source("rows", sources.generator(10, limit=20, start_s=1_700_000_000.0, max_rows_per_epoch=10))
    rows.sink("look", sinks.foreach_epoch(look))
    run_app(app)
    assert seen == [(False, EPOCH_SETTINGS)] * 2
    assert {key: spark.conf.get(key) for key in EPOCH_SETTINGS} == before


def test_the_offset_log_has_a_line_for_each_source(run_app: RunApp, tmp_path: Path) -> None:
    """Rows taken and rows due are told from it, and it lies where we look."""
    app = App("offsets")
    for name, limit in (("first", 20), ("second", 30)):
        source = sources.generator(10, limit=limit, start_s=1_700_000_000.0, max_rows_per_epoch=10)
        app.source(name, source).sink(f"{name}-out", sinks.noop())
    reports = run_app(app, checkpoint=str(tmp_path))
    own = current(LocalStore(tmp_path))
    logged = [offsets(entry(own, Epoch(report.epoch)), 2) for report in reports]
    start_us = 1_700_000_000_000_000
    expected = [(10, 10), (20, 20), (20, 30)]
    assert [[json.loads(line) for line in lines] for lines in logged] == [
        [{"row": first, "start_us": start_us}, {"row": second, "start_us": start_us}] for first, second in expected
    ]
    assert [report.rows_in for report in reports] == [20, 20, 10]
    planned = [planned_us(entry(own, Epoch(report.epoch))) for report in reports]
    assert all(us is not None and abs(us / 1e6 - r.ended_at) < 3600 for us, r in zip(planned, reports, strict=True))
    assert own.list("spark/commits") == ["0", "1", "2"]


def test_times_reach_python_in_utc(spark: "SparkSession") -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    frame = spark.createDataFrame([(at,)], "at TIMESTAMP").select(F.col("at"))

    def text(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            value = batch.column(0).cast(pa.timestamp("us", "UTC")).view(pa.int64())
            yield pa.RecordBatch.from_pydict({"us": value})

    assert frame.mapInArrow(text, "us BIGINT").collect()[0]["us"] == round(at.timestamp() * 1e6)


def test_a_placed_task_keeps_its_rows_and_knows_its_executor(spark: "SparkSession") -> None:
    """The Java class compiles, its tasks get the parent's partitions, and the executor's id reaches Python."""
    placement = Placement(spark, WORKER_PROPERTY)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from springtide.engine.worker.task_context import here

        rows = sorted(i for batch in batches for i in batch.column(0).to_pylist())
        yield pa.RecordBatch.from_pydict({"where": [f"{here()} {rows}"]})

    placed = placement.place(spark.range(0, 6, 1, 3), [executor_place("localhost", "driver")])
    found = placed.mapInArrow(task, "where STRING").collect()
    assert sorted(row["where"] for row in found) == ["driver [0, 1]", "driver [2, 3]", "driver [4, 5]"]


def test_executors_are_told_by_id_and_host(spark: "SparkSession") -> None:
    """Embedded Spark has none; tests of clusters look at real ones."""
    executors = Executors(spark)
    assert (executors.ids(), executors.all(), executors.machines()) == (frozenset(), {}, [])
    assert executors.size()[0] >= 1


def test_a_nudge_makes_an_epoch_without_rows(spark: "SparkSession", tmp_path: Path) -> None:
    """It is logged and repeated like any other, and the log can begin and end without one."""
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema("id INT").json(str(tmp_path / "in"))
    nudges, store = Nudges(spark), LocalStore(tmp_path / "checkpoint")
    stream = nudges.beside(rows)
    assert stream.schema == rows.schema
    seen: list[tuple[int, int]] = []
    nudging: set[int] = set()

    def take(batch: "DataFrame", epoch: int) -> None:
        seen.append((epoch, batch.count()))
        if epoch in nudging:
            nudges.nudge()

    def add(number: int) -> None:
        (tmp_path / "in" / str(number)).write_text(f'{{"id": {number}}}')

    def start(frame: "DataFrame", **trigger: Any) -> "StreamingQuery":
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint/spark"))
        return writer.trigger(**trigger).start()

    add(1)
    start(rows, availableNow=True).awaitTermination()
    fit(store, 1, nudged=True)
    query = start(stream, processingTime="0 seconds")
    nudges.nudge()
    wait_until("an epoch without rows", lambda: done(store, Epoch(1)), 30)
    add(2)
    wait_until("an epoch with rows", lambda: done(store, Epoch(2)), 30)
    query.stop()
    assert seen == [(0, 1), (1, 0), (2, 1)]
    feed(store, Epoch(2), entries(store, 1)[Epoch(2)])
    feed(store, Epoch(1), entries(store, 0)[Epoch(1)])
    start(stream, once=True).awaitTermination()
    assert seen[3:] == [(1, 0)], "repeated as it was"
    nudges.nudge()
    start(stream, availableNow=True).awaitTermination()
    assert seen[4:] == [(2, 1)], "one epoch for a row and a nudge"
    add(3)
    nudging |= {3, 4}
    start(stream, availableNow=True).awaitTermination()
    assert seen[5:] == [(3, 1), (4, 0), (5, 0)], "what ends with its input goes on as long as an epoch nudges"
    fit(store, 1, nudged=False)
    start(rows, availableNow=True).awaitTermination()
    assert len(seen) == 8


def test_the_read_limit_of_a_running_query_can_be_changed(spark: "SparkSession", tmp_path: Path) -> None:
    app = App("admission")
    rows = app.source("rows", sources.generator(2000))
    rows.sink("out", sinks.noop())
    seen: list[int] = []
    running = app.start(spark, checkpoint=str(tmp_path), on_epoch=lambda report: seen.append(report.rows_in))
    try:
        wait_until("a full epoch", lambda: any(taken > 40 for taken in seen), 30)
        running.admit({"rows": 40})
        wait_until("limited epochs", lambda: seen[-3:] == [40] * 3, 30)
        running.admit({"rows": 1_000_000})
        wait_until("epochs that take what waits", lambda: seen[-1] > 40, 30)
    finally:
        running.stop()


def test_workers_run_the_python_and_the_path_that_are_told(spark: "SparkSession") -> None:
    def task(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        yield sys.executable, os.environ["PYTHONPATH"]

    python, environment = worker_python(spark)
    [(executable, path)] = spark.sparkContext.parallelize([0], 1).mapPartitions(task).collect()
    assert executable == python
    assert path == environment["PYTHONPATH"]


def test_the_log_is_silent_for_a_while_and_then_as_before(spark: "SparkSession") -> None:
    root = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    before = root.getLevel().toString()
    spark.sparkContext.setLogLevel("WARN")
    try:
        with silent_log(spark):
            assert root.getLevel().toString() == "OFF"
        assert root.getLevel().toString() == "WARN"
    finally:
        spark.sparkContext.setLogLevel(before)


def test_a_function_goes_to_workers_with_its_code(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that only the driver has."""
    module = ModuleType("driver_only")
    exec("def double(n):\n    return 2 * n\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "driver_only", module)
    with pickled_by_value(module):
        assert spark.sparkContext.parallelize([1, 2], 1).map(module.double).collect() == [2, 4]


def test_file_systems_that_spark_has_and_lacks(spark: "SparkSession") -> None:
    assert [file_system_fault(spark, scheme) for scheme in ("file", "hdfs")] == [None, None]
    assert file_system_fault(spark, "s3a") == "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
    assert file_system_fault(spark, "tide") == 'No FileSystem for scheme "tide"'
    jars = Path(_find_spark_home(), "jars")
    assert (jars / f"hadoop-client-api-{hadoop_version(spark)}.jar").is_file()


def test_the_jvm_tells_its_process_and_what_is_alive_in_its_heap(spark: "SparkSession") -> None:
    assert Path(f"/proc/{jvm_pid(spark)}/comm").read_text().startswith("java")
    assert 1 << 20 < live_heap_bytes(spark) < 4 << 30


def test_frames_that_are_made_in_one_call_are_those_that_spark_makes(spark: "SparkSession") -> None:
    rows = spark.range(0, 6, 1, 2).selectExpr("id", "id * 2 AS twice", "'x' AS `a b`")

    def doubled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch.column("twice"), batch.column("id")], ["twice", "id"])

    output = StructType([StructField("twice", LongType()), StructField("id", LongType())])
    ours, theirs = map_in_arrow(rows, doubled, output), rows.mapInArrow(doubled, output)
    assert ours.schema == theirs.schema
    # A column that is not asked for afterwards is one that the function needs.
    assert ours.select("id").collect() == theirs.select("id").collect()
    columns = ["id + 1 AS `c.d`", "`a b`"]
    assert select(rows, columns).collect() == rows.selectExpr(*columns).collect()
    assert by_number(rows.selectExpr("int(id) AS id"), 3, "id").rdd.glom().map(len).collect() == [2, 2, 2]


def test_a_large_function_is_broadcast(spark: "SparkSession") -> None:
    ballast = bytes(2 << 20)

    def weighed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"bytes": [len(ballast)] * batch.num_rows})

    found = map_in_arrow(spark.range(0, 2, 1, 1), weighed, StructType([StructField("bytes", LongType())]))
    assert [row.bytes for row in found.collect()] == [2 << 20] * 2


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1000, 1001])
def test_a_batch_ends_where_it_should_and_no_row_is_lost(spark: "SparkSession", rows: int) -> None:
    """The session's own limit, after any row, does not count; that of records does, also where both fall together."""

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict(
            {"rows": [batch.num_rows for batch in batches]}, pa.schema({"rows": pa.int64()})
        )

    row_bytes = 24  # An eight-byte word for nulls, and one for each number.
    output = StructType([StructField("rows", LongType())])
    with_settings = {"maxBytesPerBatch": "1", "maxRecordsPerBatch": "16"}
    before = {name: spark.conf.get(f"spark.sql.execution.arrow.{name}") for name in with_settings}
    try:
        for name, value in with_settings.items():
            spark.conf.set(f"spark.sql.execution.arrow.{name}", value)
        for most in (8, 16, 100):
            frame = spark.range(0, rows, 1, 1).selectExpr("id", "id AS again")
            found = [row.rows for row in map_in_arrow(in_batches(frame, most * row_bytes), sizes, output).collect()]
            assert sum(found) == rows
            cuts = {end for end in range(rows + 1) if end % most == 0}
            assert found == [end - start for start, end in pairwise(ends_of_batches(rows, 16, cuts))]
    finally:
        for name, old in before.items():
            spark.conf.set(f"spark.sql.execution.arrow.{name}", old)


def ends_of_batches(rows: int, records: int, cuts: set[int]) -> list[int]:
    """Where batches end that have so many records at most, and end at these rows at the latest."""
    ends = [0]
    for row in range(1, rows + 1):
        if row in cuts or row - ends[-1] == records or row == rows:
            ends.append(row)
    return ends


def test_rows_that_are_left_behind_fail_the_task(spark: "SparkSession") -> None:
    with pytest.raises(Py4JJavaError, match="expected all rows of the partition to be read"):
        in_batches(spark.range(0, 100, 1, 1)).limit(3).collect()

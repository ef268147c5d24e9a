"""Flink in one process: a line of JSON asks for a query, a line of JSON tells how long its job took.

Runs with the Python of `.flink`, which `make flink` makes, and so imports nothing of Springtide. Flink's own jars run
in a JVM that py4j talks to; every job has a mini cluster inside it, which starts before the clock does.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway
from py4j.protocol import Py4JJavaError

QUERIES = Path(__file__).resolve().parents[3] / "workloads" / "nexmark" / "queries"
PLACE = Path(sys.prefix)
JAVA = (
    "-Xms4g",
    "-Xmx4g",
    "-Duser.timezone=UTC",
    "-Dorg.apache.logging.log4j.level=ERROR",
    *(
        f"--add-opens=java.base/java.{room}=ALL-UNNAMED"
        for room in ("lang", "lang.reflect", "net", "nio", "time", "util")
    ),
)
SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "restart-strategy.type": "none",
    "table.local-time-zone": "UTC",
    # A batch in 500 ms or 50 000 rows, counted before the shuffle: without, a keyed count is a third as fast. Sets are
    # not split into buckets ("distinct-agg.split"): on two cores that takes twice as long.
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "500 ms",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
COLUMNS = {
    "person": "id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, email_address STRING, credit_card STRING, city STRING, "
    "state STRING, date_time TIMESTAMP(3), extra STRING",
    "auction": "id BIGINT PRIMARY KEY NOT ENFORCED, item_name STRING, description STRING, initial_bid BIGINT, "
    "reserve BIGINT, date_time TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), "
    "extra STRING",
}
"""All times are whole milliseconds, and Flink's event time is no finer. A key makes the state of joins smaller."""
SIDE_INPUT = "key BIGINT PRIMARY KEY NOT ENFORCED, `value` STRING"
WATERMARK = "WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND"
EVENT_TIME = "DESCRIPTOR(date_time)"
"""What a query says that has windows of event time; the others have no watermark to compute."""
ARROW = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "TIMESTAMP_WITHOUT_TIME_ZONE": pa.timestamp("ms"),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": pa.timestamp("ms"),
}
CHANGES = "debezium-json"
"""The format of Flink's that files of changes can have: rows that come, and rows that go."""


class Flink:
    """A JVM with Flink, in which one job runs after another."""

    def __init__(self) -> None:
        libraries = next(PLACE.glob("lib/python*/site-packages/pyflink"))
        # Ours come first: one class stands for one of Flink's.
        jars = [PLACE / "classes", *sorted(libraries.glob("lib/*.jar")), *sorted((PLACE / "jars").glob("*.jar"))]
        home = os.environ.get("JAVA_HOME")
        port, token = launch_gateway(
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=list(JAVA),
            java_path=str(Path(home) / "bin" / "java") if home else "java",
            die_on_exit=True,
            # Standard output is for answers.
            redirect_stdout=sys.stderr,
            redirect_stderr=sys.stderr,
            enable_auth=True,
        )
        self._java = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token)).jvm
        self._table_api = self._java.org.apache.flink.table.api

    def run(self, sql: str, directory: Path, output: Path | None) -> float:
        """The seconds that the job took which runs a query; its rows are in a Parquet file in `output`, or nowhere."""
        tables = self._tables(sql, directory)
        rows = tables.sqlQuery(sql)
        if output is None:
            return _seconds(rows.executeInsert(self._sink("blackhole").build()))
        changes = Path(tempfile.mkdtemp(prefix="changes-", dir=output.parent))
        try:
            sink = self._sink("filesystem").option("path", changes.as_uri()).option("format", CHANGES)
            seconds = _seconds(
                rows.executeInsert(sink.option(f"{CHANGES}.timestamp-format.standard", "ISO-8601").build())
            )
            output.mkdir(parents=True)
            pq.write_table(remaining(changes, _schema(rows)), output / "answer.parquet")
        finally:
            shutil.rmtree(changes)
        return seconds

    def warm_up(self) -> None:
        """Run a job that does next to nothing."""
        words = self._environment().sqlQuery("SELECT word, COUNT(*) FROM (VALUES 'a', 'b') AS t(word) GROUP BY word")
        _seconds(words.executeInsert(self._sink("blackhole").build()))

    def _environment(self) -> JavaObject:
        settings = self._java.org.apache.flink.configuration.Configuration()
        for name, value in SETTINGS.items():
            settings.setString(name, value)
        built = self._table_api.EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build()
        return self._table_api.TableEnvironment.create(built)

    def _tables(self, sql: str, directory: Path) -> JavaObject:
        """An environment with the tables of a directory."""
        environment = self._environment()
        places = {name: directory / name for name in COLUMNS} | {"side_input": directory / "side_input.parquet"}
        for name, place in places.items():
            columns = [COLUMNS.get(name, SIDE_INPUT)]
            if name in COLUMNS and EVENT_TIME in sql:
                columns.append(WATERMARK)
            environment.executeSql(
                f"CREATE TEMPORARY TABLE {name} ({', '.join(columns)}) WITH ("
                f"'connector' = 'filesystem', 'path' = '{place.as_uri()}', 'format' = 'parquet', "
                "'parquet.utc-timezone' = 'true')"
            )
        return environment

    def _sink(self, connector: str) -> JavaObject:
        return self._table_api.TableDescriptor.forConnector(connector)


def remaining(changes: Path, schema: pa.Schema) -> pa.Table:
    """The rows that are there after all changes, which are in files of `CHANGES`, in whatever order."""
    row = pa.struct(list(schema))
    columns = pyarrow.json.ParseOptions(explicit_schema=pa.schema({"before": row, "after": row, "op": pa.string()}))
    files = [file for file in changes.iterdir() if not file.name.startswith(".") and file.stat().st_size]
    read = [pyarrow.json.read_json(file, parse_options=columns) for file in files]
    come_and_gone = []
    for side, weight in (("after", 1), ("before", -1)):
        for table in read:
            rows = pa.Table.from_struct_array(table.filter(table[side].is_valid())[side])
            come_and_gone.append(rows.append_column("_times", pa.array([weight] * rows.num_rows, pa.int64())))
    if not come_and_gone:
        return schema.empty_table()
    counted = pa.concat_tables(come_and_gone).group_by(schema.names).aggregate([("_times", "sum")])
    times = counted["_times_sum"].to_pylist()
    return counted.select(schema.names).take([at for at, number in enumerate(times) for _ in range(number)])


def _schema(rows: JavaObject) -> pa.Schema:
    resolved = rows.getResolvedSchema()
    kinds = [kind.getLogicalType().getTypeRoot().name() for kind in resolved.getColumnDataTypes()]
    return pa.schema([(name, ARROW[kind]) for name, kind in zip(resolved.getColumnNames(), kinds, strict=True)])


def _seconds(submitted: JavaObject) -> float:
    """Of a job, from its submission to its end, by Flink's own account."""
    result = submitted.getJobClient().get().getJobExecutionResult().get()
    return float(result.getNetRuntime()) / 1e3


def why(error: Py4JJavaError) -> str:
    """The message of the first cause."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"


def answer(flink: Flink, asked: dict[str, Any]) -> dict[str, Any]:
    """What is answered to the question for a query."""
    output = asked.get("output")
    try:
        sql = (QUERIES / f"{asked['run']}_flink.sql").read_text(encoding="utf-8")
        return {"seconds": flink.run(sql, Path(asked["directory"]), Path(output) if output else None)}
    except Py4JJavaError as error:
        return {"error": why(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    began = time.monotonic()
    flink = Flink()
    flink.warm_up()
    print(json.dumps({"start_up_s": time.monotonic() - began}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("stop"):
            return
        print(json.dumps(answer(flink, asked)), flush=True)


if __name__ == "__main__":
    main()

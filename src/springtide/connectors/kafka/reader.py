"""A Kafka topic as a streaming DataFrame, by Spark's own connector."""

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from springtide.connectors.json_records import TEXT, JsonRecords, refused
from springtide.connectors.kafka.broker import partitions, resolved
from springtide.connectors.kafka.dead_letters import ORIGIN
from springtide.connectors.kafka.source import POSITION, Kafka
from springtide.connectors.open_source import OpenSource, as_they_are
from springtide.connectors.record_place import of_record
from springtide.dataflow.source_spec import CORRUPT, MALFORMED
from springtide.errors import SpringtideError

SETTINGS = {
    # What a transaction has not committed is not there.
    "kafka.isolation.level": "read_committed",
    # A broker may be away for minutes: the driver asks again, a task goes on waiting.
    "fetchOffset.numRetries": "60",
    "fetchOffset.retryIntervalMs": "1000",
    "kafkaConsumer.pollTimeoutMs": "600000",
}
"""Of the connector; each can be overridden."""
RAW = ("key", "value", "topic", "partition", "offset", "timestamp")


class NoConnector(SpringtideError, RuntimeError):
    """A session that was made without the connector."""

    def __str__(self) -> str:
        return (
            "expected a Spark session with Spark's Kafka connector, got one without: let Springtide make the session, "
            "or run `springtide kafka fetch` and set spark.jars to what `springtide kafka jars` prints"
        )


def open_topic(spark: SparkSession, step: str, spec: Kafka, *, placed: bool = False) -> OpenSource:
    """The records of a topic, and how to read them.

    A broker that is away and a topic that is not there are noticed here, within seconds. If records are to be
    `placed`, they have the column PLACE.
    """
    servers = resolved(spec.servers)
    partitions(servers, spec.topic, spec.client)
    reader = spark.readStream.format("kafka").options(**{**SETTINGS, **spec.options})
    reader = reader.option("kafka.bootstrap.servers", servers).option("subscribe", spec.topic)
    loaded = _load(reader.option("startingOffsets", spec.starting))
    headers = ["headers"] if "headers" in loaded.columns else []
    records = loaded.select(*RAW, *headers, *([of_record()] if placed else []))
    if spec.format == "raw":
        return OpenSource(records, as_they_are)
    assert spec.schema is not None, "JSON has a schema"
    json = JsonRecords(spec.schema, {}, lenient=spec.lenient)
    return OpenSource(records, lambda some, also: _parsed(some, json, step, spec, also))


def _load(reader: DataStreamReader) -> DataFrame:
    try:
        return reader.load()
    except AnalysisException as error:
        if "Failed to find data source" not in str(error):
            raise
        raise NoConnector from error


def _parsed(records: DataFrame, json: JsonRecords, step: str, spec: Kafka, also: tuple[str, ...]) -> DataFrame:
    """The columns of the schema, and CORRUPT with the text of records that do not fit it."""
    parsed = json.parsed(records.select(*RAW, *also, F.col("value").cast("string").alias(TEXT)))
    position = [F.col(source).alias(name) for name, source in _positions().items()] if spec.position else []
    if spec.malformed == "fail":
        where = F.concat(F.lit("record "), _where(), F.lit(" (topic/partition/offset)"))
        parsed = parsed.filter(refused(step, where, json.corrupt()))
    columns = json.columns()
    if spec.dead_letter_topic is not None:
        columns += [F.when(json.corrupt().isNotNull(), _bytes()).alias(MALFORMED), _where().alias(ORIGIN)]
    elif spec.malformed == "count":
        columns.append(json.corrupt().alias(CORRUPT))
    return parsed.select(*columns, *position, *also)


def _where() -> Column:
    return F.concat_ws("/", F.col("topic"), F.col("partition"), F.col("offset"))


def _bytes() -> Column:
    """The record as it came; one without a value is empty."""
    return F.coalesce(F.col("value"), F.lit("").cast("binary"))


def _positions() -> dict[str, str]:
    return dict(zip(POSITION, ("topic", "partition", "offset", "timestamp", "key"), strict=True))

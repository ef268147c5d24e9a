"""A Kafka topic as a streaming DataFrame, by Spark's own connector."""

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from springtide.dataflow.broker import partitions, resolved
from springtide.dataflow.kafka import MALFORMED, ORIGIN, POSITION, Kafka
from springtide.dataflow.sources import CORRUPT
from springtide.engine.json_records import TEXT, JsonRecords, refused
from springtide.engine.place import of_record
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


def kafka_stream(spark: SparkSession, step: str, spec: Kafka, *, placed: bool = False) -> DataFrame:
    """The rows of a topic. A broker that is away and a topic that is not there are noticed here, within seconds.

    If they are to be `placed`, the column PLACE tells where each stands.
    """
    servers = resolved(spec.servers)
    partitions(servers, spec.topic, spec.client)
    reader = spark.readStream.format("kafka").options(**{**SETTINGS, **spec.options})
    reader = reader.option("kafka.bootstrap.servers", servers).option("subscribe", spec.topic)
    records = _load(reader.option("startingOffsets", spec.starting))
    headers = ["headers"] if "headers" in records.columns else []
    if spec.format == "raw":
        return records.select(*RAW, *headers)
    return _parsed(records, step, spec, placed=placed)


def _load(reader: DataStreamReader) -> DataFrame:
    try:
        return reader.load()
    except AnalysisException as error:
        if "Failed to find data source" not in str(error):
            raise
        raise NoConnector from error


def _parsed(records: DataFrame, step: str, spec: Kafka, *, placed: bool) -> DataFrame:
    """The columns of the schema, and CORRUPT with the text of records that do not fit it."""
    assert spec.schema is not None, "JSON has a schema"
    json = JsonRecords(spec.schema, {}, lenient=spec.lenient)
    parsed = json.parsed(records.select(*RAW, F.col("value").cast("string").alias(TEXT)))
    position = [F.col(source).alias(name) for name, source in _positions().items()] if spec.position else []
    if spec.malformed == "fail":
        where = F.concat(F.lit("record "), _where(), F.lit(" (topic/partition/offset)"))
        parsed = parsed.filter(refused(step, where, json.corrupt()))
    columns = json.columns()
    if spec.dead_letter_topic is not None:
        columns += [F.when(json.corrupt().isNotNull(), _bytes()).alias(MALFORMED), _where().alias(ORIGIN)]
    elif spec.malformed == "count":
        columns.append(json.corrupt().alias(CORRUPT))
    return parsed.select(*columns, *position, *([of_record()] if placed else []))


def _where() -> Column:
    return F.concat_ws("/", F.col("topic"), F.col("partition"), F.col("offset"))


def _bytes() -> Column:
    """The record as it came; one without a value is empty."""
    return F.coalesce(F.col("value"), F.lit("").cast("binary"))


def _positions() -> dict[str, str]:
    return dict(zip(POSITION, ("topic", "partition", "offset", "timestamp", "key"), strict=True))

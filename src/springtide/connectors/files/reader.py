"""Files as a streaming DataFrame, by Spark's own readers."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from springtide.connectors.files.source import Files
from springtide.connectors.json_records import STRICT, TEXT, JsonRecords, refused
from springtide.connectors.open_source import OpenSource
from springtide.connectors.record_place import in_files, of_line
from springtide.dataflow.source_spec import CORRUPT

_FILE = "__file"
_WHOLE = {"multiline", "encoding", "charset"}
"""Options under which records are not the lines of a file in UTF-8: only Spark's own reader finds them.

It also reads files whose path has columns (`day=1/`).
"""


def open_files(spark: SparkSession, step: str, spec: Files, *, placed: bool = False) -> OpenSource:
    """The records of files; what does not fit the schema is in the column CORRUPT, or ends the epoch, as the spec says.

    If they are to be `placed`, they have the column PLACE.
    """
    strict = spec.format == "json" and not spec.lenient
    if strict and not _WHOLE & {name.lower() for name in spec.options}:
        lines = spark.readStream.format("text").options(**{**spec.options, "wholetext": "false"}).load(spec.path)
        if lines.columns == ["value"]:
            return _json_lines(lines, step, spec, placed=placed)
    rows = _load(spark, spec, strict=strict)
    return OpenSource.of_rows(rows.select("*", in_files(rows, spec.format)) if placed else rows)


def _load(spark: SparkSession, spec: Files, *, strict: bool) -> DataFrame:
    reader = spark.readStream.format(spec.format).options(**{**(STRICT if strict else {}), **spec.options})
    if spec.schema is None:
        return reader.load(spec.path)
    if spec.format not in ("json", "csv"):
        return reader.schema(spec.schema).load(spec.path)
    if spec.malformed == "fail":
        return reader.schema(spec.schema).option("mode", "FAILFAST").load(spec.path)
    with_corrupt = f"{spec.schema}, {CORRUPT} STRING"
    return reader.schema(with_corrupt).option("mode", "PERMISSIVE").load(spec.path)


def _json_lines(lines: DataFrame, step: str, spec: Files, *, placed: bool) -> OpenSource:
    """One object a line; a blank line is no record."""
    records = lines.select(F.col("value").alias(TEXT), F.col("_metadata.file_path").alias(_FILE))
    records = records.filter(F.col(TEXT).rlike(r"\S"))
    if placed:
        records = records.select("*", of_line(_FILE, TEXT))
    assert spec.schema is not None, "JSON has a schema"
    json = JsonRecords(spec.schema, spec.options, lenient=False)
    return OpenSource(records, lambda some, also: _parsed(some, json, step, spec, also))


def _parsed(records: DataFrame, json: JsonRecords, step: str, spec: Files, also: tuple[str, ...]) -> DataFrame:
    parsed = json.parsed(records)
    if spec.malformed == "fail":
        where = F.concat(F.lit("a line of "), F.col(_FILE))
        return parsed.filter(refused(step, where, json.corrupt())).select(*json.columns(), *also)
    return parsed.select(*json.columns(), json.corrupt().alias(CORRUPT), *also)

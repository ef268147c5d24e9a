"""Files as a source: what to read, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from springtide.confidential import Discreet, remember_settings, remember_url
from springtide.dataflow.source_spec import SourceSpec
from springtide.errors import BadValue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from springtide.connectors.open_source import OpenSource

Malformed = Literal["count", "fail"]


@dataclass(frozen=True, repr=False)
class Files(Discreet, SourceSpec):
    """Files that appear in a directory or match a pattern, each read once."""

    path: str
    format: str
    schema: str | None = None
    malformed: Malformed = "count"
    options: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False
    kind: str = "files"

    def __post_init__(self) -> None:
        remember_url(self.path)
        remember_settings(self.options)

    @property
    def holds(self) -> bool:
        return True

    @property
    def location(self) -> str:
        return self.path

    def open(self, spark: "SparkSession", step: str, *, placed: bool) -> "OpenSource":
        from springtide.connectors.files.reader import open_files

        return open_files(spark, step, self, placed=placed)


def files(
    path: str,
    *,
    format: str = "text",
    schema: str | None = None,
    malformed: Malformed = "count",
    lenient: bool = False,
    **options: str,
) -> Files:
    """Files by path or pattern. JSON and CSV need a `schema` ("user STRING, at TIMESTAMP").

    Records that do not fit the schema are counted as dead letters, or stop the app with
    `malformed="fail"`. Other options go to Spark, for example `maxFilesPerTrigger="1"`.

    A line of JSON is one object in UTF-8 and nothing else. With `lenient=True` it is what Spark makes of it: text after
    the object is passed over, an array gives its objects, and single quotes and invalid UTF-8 are taken. Files with
    `multiLine`, an `encoding` or columns in their path (`day=1/`) are read by Spark's own reader, which does not look
    at what comes after an object.
    """
    if malformed not in ("count", "fail"):
        raise BadValue(f"malformed must be 'count' or 'fail', not {malformed!r}")
    if format != "text" and schema is None:
        raise BadValue(f"files of format {format!r} need a schema, for example schema='user STRING, n INT'")
    if lenient and format != "json":
        raise BadValue(f"lenient is for files of JSON, not for those of format {format!r}")
    return Files(path, format, schema, malformed, options, lenient)

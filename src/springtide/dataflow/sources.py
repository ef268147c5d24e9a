"""Where rows come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from springtide.confidential import Discreet, remember_settings, remember_url
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.generator import GeneratorSpec
from springtide.dataflow.kafka import Kafka, kafka
from springtide.dataflow.rates import Rate, constant
from springtide.errors import BadValue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "CORRUPT", "Files", "Generator", "Kafka", "SourceSpec", "Streaming", "as_source", "files", "generator", "kafka",
    "stream",
]  # fmt: skip

Malformed = Literal["count", "fail"]
CORRUPT = "_corrupt_record"


class SourceSpec(Protocol):
    """A description of a source; the engine opens it."""

    @property
    def kind(self) -> str:
        """What it is, for people."""

    @property
    def admits(self) -> bool:
        """Whether the rows that it gives in an epoch can be limited while it runs."""

    @property
    def replayable(self) -> bool:
        """Whether it gives the rows of an epoch again, however long ago that was."""


@dataclass(frozen=True, repr=False)
class Files(Discreet):
    """Files that appear in a directory or match a pattern, each read once."""

    path: str
    format: str
    schema: str | None = None
    malformed: Malformed = "count"
    options: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False
    kind: str = "files"
    admits: bool = False
    replayable: bool = True

    def __post_init__(self) -> None:
        remember_url(self.path)
        remember_settings(self.options)


@dataclass(frozen=True)
class Streaming:
    """Any streaming DataFrame, or a function that makes one from the session."""

    open: "Callable[[SparkSession], DataFrame]"
    replayable: bool = True
    kind: str = "stream"
    admits: bool = False


@dataclass(frozen=True)
class Generator:
    """Seeded rows that are due by the wall clock, consumed or not."""

    spec: GeneratorSpec
    kind: str = "generator"
    replayable: bool = True

    @property
    def admits(self) -> bool:
        return self.spec.max_rows_per_epoch is None


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


def generator(rate: Rate | float, **options: Any) -> Generator:
    """Seeded, open-loop rows; options are those of GeneratorSpec: seed, limit, keys, skew, words_per_row, ..."""
    return Generator(GeneratorSpec(constant(rate) if isinstance(rate, int | float) else rate, **options))


def stream(open: "Callable[[SparkSession], DataFrame]", *, replayable: bool = True) -> Streaming:
    """A streaming DataFrame made by a function of the session, for anything that Spark can read.

    Say `replayable=False` if it cannot give rows a second time, as a socket: the app then refuses what needs that.
    """
    return Streaming(open, replayable)


def as_source(name: str, source: Any) -> SourceSpec:
    """A source specification from whatever a person passed."""
    if isinstance(source, Kafka):
        return source.checked(name)
    if isinstance(source, Files | Streaming | Generator):
        return source
    if getattr(source, "isStreaming", None) is True:
        return Streaming(lambda _: source)
    if getattr(source, "isStreaming", None) is False:
        raise BadGraph(name, "a streaming DataFrame (spark.readStream...)", "a batch DataFrame")
    if callable(source):
        return Streaming(source)
    raise BadGraph(name, "a source of springtide.sources or a streaming DataFrame", repr(source))

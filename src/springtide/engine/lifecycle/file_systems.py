"""File systems that Spark itself must know: of the checkpoint, and of sources that read files."""

import re

from pyspark.sql import SparkSession

from springtide.confidential import masked_url
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Source
from springtide.engine.spark.internals import file_system_fault, hadoop_version
from springtide.errors import SpringtideError

PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "s3": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "gs": "org.apache.hadoop:hadoop-gcp:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "wasb": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "wasbs": "org.apache.hadoop:hadoop-azure:{hadoop}",
}
"""By scheme: the package that brings its file system, of the same version as Spark's Hadoop client."""
ALIASES = {"s3": "spark.hadoop.fs.s3.impl=org.apache.hadoop.fs.s3a.S3AFileSystem"}
"""By scheme: the setting that it takes beside the package."""
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")


class NoFileSystem(SpringtideError):
    """Spark lacks the jars for a URL."""

    def __init__(self, url: str, reason: str, remedy: str) -> None:
        super().__init__(url, reason, remedy)
        self.url, self.reason, self.remedy = url, reason, remedy

    def __str__(self) -> str:
        return f"Spark cannot open {masked_url(self.url)!r}: {self.reason}. {self.remedy}"


def check_checkpoint(spark: SparkSession, url: str) -> None:
    """Raise NoFileSystem if Spark could not keep its own log in a checkpoint."""
    _check(spark, url)


def check_sources(spark: SparkSession, graph: Graph) -> None:
    """Raise StepFailed for the first source whose files Spark could not read."""
    for source in graph.of(Source):
        if source.spec.location is not None:
            try:
                _check(spark, source.spec.location)
            except NoFileSystem as error:
                raise StepFailed(source.name, "opening its source", str(error)) from error


def remedy(scheme: str, hadoop: str) -> str:
    """What to add to the session: settings for the command line, which a session of one's own takes as well."""
    package = PACKAGES.get(scheme)
    if package is None:
        return (
            f"Add jars with a Hadoop file system for {scheme}:// that fits Hadoop {hadoop}: --conf "
            f"spark.jars.packages=GROUP:NAME:VERSION --conf spark.hadoop.fs.{scheme}.impl=CLASS"
        )
    settings = [f"spark.jars.packages={package.format(hadoop=hadoop)}", *filter(None, [ALIASES.get(scheme)])]
    options = " ".join(f"--conf {setting}" for setting in settings)
    return f"Add its jars, which Spark fetches at its start: {options} (a session of your own takes the same settings)"


def _check(spark: SparkSession, url: str) -> None:
    if (found := _SCHEME.match(url)) is None:
        return
    scheme = found[1].lower()
    if (fault := file_system_fault(spark, scheme)) is not None:
        raise NoFileSystem(url, fault, remedy(scheme, hadoop_version(spark)))

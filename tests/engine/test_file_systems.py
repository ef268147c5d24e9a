"""What to add to Spark for a URL that it does not know."""

import pytest

from springtide.engine.lifecycle.file_systems import remedy


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ("s3a", "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.9.1 ("),
        ("s3", "hadoop-aws:3.9.1 --conf spark.hadoop.fs.s3.impl=org.apache.hadoop.fs.s3a.S3AFileSystem"),
        ("abfss", "spark.jars.packages=org.apache.hadoop:hadoop-azure:3.9.1"),
        ("gs", "spark.jars.packages=org.apache.hadoop:hadoop-gcp:3.9.1"),
        ("xyz", "a Hadoop file system for xyz:// that fits Hadoop 3.9.1"),
    ],
)
def test_it_is_named_with_the_version_that_fits(scheme: str, says: str) -> None:
    assert says in remedy(scheme, "3.9.1")

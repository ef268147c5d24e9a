"""An app whose checkpoint and sinks are in S3; run as a script, a driver process that runs it."""

import argparse
import sys
from pathlib import Path

from chaos_app import add_branches, run_and_tell, spec

from springtide import App, sources
from springtide.blocks import claim

AWS_SDK = "2.35.4"
HADOOP = "3.5.0"
PACKAGES = (f"org.apache.hadoop:hadoop-aws:{HADOOP}", f"software.amazon.awssdk:s3-transfer-manager:{AWS_SDK}")
"""Hadoop's S3A with the parts of Amazon's SDK that it takes, in place of all of it, which is 650 MB."""


def build(place: str, epochs: int) -> App:
    """The chaos app, with its sinks in a directory of a bucket."""
    app = App("chaos", slices=16)
    add_branches(app.source("rows", sources.Generator(spec(epochs))), place)
    return app


def settings(endpoint: str) -> dict[str, str]:
    """What lets Spark into the server; the key is in the environment, for Spark as for s3fs."""
    return {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
    }


def main() -> int:
    """Run the app on a Spark of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("place")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--lease", type=float, default=claim.LEASE_S)
    options = parser.parse_args()
    claim.LEASE_S = options.lease
    app = build(options.place, options.epochs)
    return run_and_tell(
        app, options.root, checkpoint=f"{options.place}/checkpoint", instances=2, more=settings(options.endpoint)
    )


if __name__ == "__main__":
    sys.exit(main())

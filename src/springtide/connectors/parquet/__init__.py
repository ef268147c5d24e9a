"""A Parquet dataset as a sink: each epoch in a directory of its own."""

from springtide.connectors.parquet.sink import Parquet, parquet

__all__ = ["Parquet", "parquet"]

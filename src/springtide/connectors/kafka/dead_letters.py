"""Malformed records of a topic, written to another one: a branch of the dataflow like any other, exactly once."""

from springtide.connectors.kafka.sink import KafkaSink
from springtide.dataflow.source_spec import MALFORMED
from springtide.dataflow.stream import Stream

ORIGIN = "_origin"
"""The column that says where a record came from: topic, partition and offset."""
ORIGIN_KEY = "origin"
"""What that column is called in the rows for the dead-letter topic, where it is the key."""


def detoured(stream: Stream, letters_to: KafkaSink) -> Stream:
    """The rows that fit the schema; the other records go to the dead-letter topic as they came."""
    step = stream.step
    letters = stream.transform(
        f"{step}-malformed",
        lambda df: df.filter(f"{MALFORMED} IS NOT NULL").selectExpr(
            f"{ORIGIN} AS {ORIGIN_KEY}", f"{MALFORMED} AS value"
        ),
    )
    letters.sink(f"{step}-dead-letters", letters_to)
    return stream.transform(f"{step}-rows", lambda df: df.filter(f"{MALFORMED} IS NULL").drop(MALFORMED, ORIGIN))

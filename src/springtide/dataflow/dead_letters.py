"""Malformed records of a topic, written to another one: a branch of the dataflow like any other, exactly once."""

from springtide.dataflow.kafka import MALFORMED, ORIGIN, Kafka
from springtide.dataflow.kafka_sink import KafkaSink
from springtide.dataflow.stream import Stream


def detoured(stream: Stream, spec: Kafka) -> Stream:
    """The rows that fit the schema; the other records go to the dead-letter topic as they came.

    Their key there tells where they came from: topic, partition and offset.
    """
    if spec.dead_letter_topic is None:
        return stream
    step = stream.step
    letters = stream.transform(
        f"{step}-malformed",
        lambda df: df.filter(f"{MALFORMED} IS NOT NULL").selectExpr(f"{ORIGIN} AS origin", f"{MALFORMED} AS value"),
    )
    letters.sink(
        f"{step}-dead-letters", KafkaSink(spec.servers, spec.dead_letter_topic, "origin", "raw", spec.client)
    )
    return stream.transform(
        f"{step}-rows", lambda df: df.filter(f"{MALFORMED} IS NULL").drop(MALFORMED, ORIGIN)
    )

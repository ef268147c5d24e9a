"""`springtide run --kafka`: a broker on this machine for as long as the app runs."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from springtide.connectors.kafka.broker import SERVERS, library
from springtide.connectors.kafka.sink import KafkaSink
from springtide.connectors.sources import Kafka
from springtide.dataflow.graph import Graph, Sink, Source

PLACE = ".springtide/kafka"
"""Where the broker keeps its topics: an app that goes on where it was needs them."""
PARTITIONS = 2


def local_broker(wanted: bool, *graphs: Graph) -> AbstractContextManager[None]:
    """With `wanted`, a broker with every topic of the apps, for sources and sinks that name no servers."""
    return _running(graphs) if wanted else nullcontext()


@contextmanager
def _running(graphs: Iterable[Graph]) -> Iterator[None]:
    library()  # Says what to install, if that is what is missing.
    from springtide.testing.kafka import Broker
    from springtide.testing.topics import create, partitions_of

    with Broker(PLACE) as broker:
        for topic in dict.fromkeys(topic for graph in graphs for topic in topics(graph)):
            if not partitions_of(broker.servers, topic):
                create(broker.servers, topic, PARTITIONS)
        before = os.environ.get(SERVERS)
        os.environ[SERVERS] = broker.servers
        try:
            yield
        finally:
            if before is None:
                del os.environ[SERVERS]
            else:
                os.environ[SERVERS] = before


def topics(graph: Graph) -> list[str]:
    """The topics of sources and sinks that name no servers, each once."""
    found = [node.spec.topic for node in graph.of(Source, Sink) if _unnamed(node.spec)]
    return list(dict.fromkeys(found))


def _unnamed(spec: object) -> bool:
    return isinstance(spec, Kafka | KafkaSink) and spec.servers is None

"""Readings of sensors from a Kafka topic, each compared with its K nearest neighbours in a reference set.

    python examples/taxi_data.py --knn --rate 500          # a broker, its topic, and sensors that keep reading
    SPRINGTIDE_KAFKA=127.0.0.1:40123 springtide run examples/knn.py               # with the address that it prints

A reading that is far from all others of its kind is unusual; the sensors with most of them are shown. When more
readings come than the machine can work on, some are left out, as long as 30 % are looked at. KNN_PRIORITY says how it
stands to the other apps of the cluster.
"""

import os

from springtide import App, sinks, sources
from springtide.workloads.knn import SCHEMA, Neighbours


def build(readings=None, sink=None, *, priority=0, k=5, reference=4000) -> App:
    """The app; the larger the reference set, the longer a reading takes: 4000 points are about 0.2 ms."""
    app = App("knn")
    by_sensor = app.source("readings", readings or sources.kafka(None, "readings", schema=SCHEMA)).key_by("sensor")
    neighbours = Neighbours(k, reference)
    found = by_sensor.reduce_batches("neighbours", neighbours, state=Neighbours.STATE, output=Neighbours.OUTPUT)
    query = found.sink("sensors", sink or sinks.console(top=10, by="unusual"))
    query.with_minimum_accuracy(0.3).with_priority(priority)
    return app


app = build(priority=int(os.environ.get("KNN_PRIORITY", "0")))

if __name__ == "__main__":
    app.run()

"""Keeps taxis driving, or sensors reading: seeded rows into Kafka topics at a steady rate, until Ctrl-C.

    python examples/taxi_data.py                                        # with a broker of its own; says where it is
    python examples/taxi_data.py 127.0.0.1:9092 --rate 500 --seconds 60
    python examples/taxi_data.py 127.0.0.1:9092 --knn

Topics that are not there are made. The same row number always has the same content.
"""

import argparse
import time
from contextlib import ExitStack
from functools import partial

from springtide import rates
from springtide.testing.injector import Injector
from springtide.testing.kafka import Broker
from springtide.testing.topics import create, partitions_of
from springtide.workloads import knn, taxi

TAXI = {"hailed": partial(taxi.record, seed=1), "booked": partial(taxi.record, seed=2)}
KNN = {"readings": knn.record}


def inject(servers, topics, rate, seconds, partitions=2):
    """Rows for each topic at this rate; returns how many each got."""
    with ExitStack() as stack:
        injectors = []
        for topic, value in topics.items():
            there = partitions_of(servers, topic) or range(partitions)
            if not partitions_of(servers, topic):
                create(servers, topic, partitions)
            limit = round(rate * seconds) if seconds else None
            injector = Injector(servers, topic, rates.constant(rate), value, partitions=there, limit=limit)
            injectors.append(stack.enter_context(injector))
        while not all(injector.finished for injector in injectors):
            time.sleep(0.1)
    return {injector.topic: injector.sent for injector in injectors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("servers", nargs="?", help="host:port of a broker; one is started if none is named")
    parser.add_argument("--rate", type=float, default=500.0, help="rows a second, in each topic")
    parser.add_argument("--seconds", type=float, help="how long; until Ctrl-C if not said")
    parser.add_argument("--knn", action="store_true", help="readings of sensors instead of taxi drives")
    asked = parser.parse_args()
    with ExitStack() as stack:
        servers = asked.servers or stack.enter_context(Broker()).servers
        print(f"SPRINGTIDE_KAFKA={servers}", flush=True)
        try:
            print(inject(servers, KNN if asked.knn else TAXI, asked.rate, asked.seconds))
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()

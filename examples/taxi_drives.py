"""Taxi drives from two Kafka topics, and two queries that are too dear for every drive in the rush hour.

    python examples/taxi_data.py --rate 500                # a broker, its topics, and taxis that keep driving
    SPRINGTIDE_KAFKA=127.0.0.1:40123 springtide run examples/taxi_drives.py       # with the address that it prints

    hailed ─┐          ┌─ speeds   how fast each taxi gets through the streets
            ├─ drives ─┤
    booked ─┘          └─ zones    how many of its drives led from one zone to another

Both queries do some geometry for each drive. When more drives come than the machine can work on, drives are left
out: `speeds` is of use as long as 40 % of them are counted, `zones` needs 60 %. Of the two, the one with the lower
priority gives way first; set SPEEDS_PRIORITY and ZONES_PRIORITY. They are TDSnk1 and TDSnk2 in Stream Economics.
"""

import os

from springtide import App, sinks, sources
from springtide.workloads.taxi import SCHEMA, City, Speeds, Zones


def build(hailed=None, booked=None, speeds_sink=None, zones_sink=None, *, priorities=(0, 0), detail=4) -> App:
    """The app; the more `detail` the city has, the longer a drive takes: 4 is about 0.1 ms a query."""
    app, city = App("taxi-drives"), City(detail)
    hailed_drives = app.source("hailed", hailed or sources.kafka(None, "hailed", schema=SCHEMA))
    booked_drives = app.source("booked", booked or sources.kafka(None, "booked", schema=SCHEMA))
    by_taxi = hailed_drives.union("drives", booked_drives).key_by("taxi")

    # Keyed steps, as only those have slices that can go to another worker.
    speeds = by_taxi.reduce_batches("speed", Speeds(city), state=Speeds.STATE, output=Speeds.OUTPUT)
    zones = by_taxi.reduce_batches("zone", Zones(city), state=Zones.STATE, output=Zones.OUTPUT)

    fastest, restless = sinks.console(top=8, by="km_h"), sinks.console(top=8, by="crossings")
    speeds.sink("speeds", speeds_sink or fastest).with_minimum_accuracy(0.4).with_priority(priorities[0])
    zones.sink("zones", zones_sink or restless).with_minimum_accuracy(0.6).with_priority(priorities[1])
    return app


def priority(query: str) -> int:
    """What the environment says, or 0."""
    return int(os.environ.get(f"{query.upper()}_PRIORITY", "0"))


app = build(priorities=(priority("speeds"), priority("zones")))

if __name__ == "__main__":
    app.run()

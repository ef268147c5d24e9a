"""Traffic: how roads do and where vehicles go, from the positions that they send.

    springtide run examples/traffic.py --workers 3

    source ─ gps-parse ─ gps-check ─ map-match
       8         8           8           8

                ┌─ road-speed  8 ─ smooth-speed  8 ─┐
                │                                   ├─ congestion  16 ─ travel-time  16 ─┐
    map-match ──┼─ road-flow   8 ───────────────────┘                                    │
                ├─ trips       8 ─ origin-destination  8 ────────────────────────────────┼─ sink  32   events a second
                └─ standstill  8 ────────────────────────────────────────────────────────┘

Once a position is on the map, four tasks look at it in four ways, each at its own pace: results of one event reach
the sink together all the same, at the end of its epoch.
"""

from springtide import App
from springtide.workloads import dataflow_app
from springtide.workloads.dataflows import TRAFFIC


def build(source=None, sink=None, **options) -> App:
    """The app; `rate`, `keys` and `service_s` are options, the last one by task if you like."""
    return dataflow_app.build(TRAFFIC, source=source, sink=sink, **options)


app = build()

if __name__ == "__main__":
    app.run()

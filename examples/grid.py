"""Grid: what a smart power grid is going to need, from its meters and from the weather.

    springtide run examples/grid.py --workers 3

    source ─┬─ meter-parse ─ meter-check ─ meter-fill ─ meter-annotate ─ usage-profile
            └─ weather-parse ─ weather-check ─ weather-align ─ degree-days                 8 events a second each

    meter-annotate ─┐
                    ├─ regression-features ─ regression-tree ─ demand-forecast ─┐
    weather-align ──┘                                                           │
                                                                                ├─ sink   16 each, the sink 32
    usage-profile ──┐                                                           │
                    ├─ series-features ─ time-series ─ peak-alert ──────────────┘
    degree-days ────┘

Fifteen tasks, and the longest way through them has eight. Tasks that do not need each other work at the same time; the
two forecasts are made from the same readings by different means.
"""

from springtide import App
from springtide.workloads import dataflow_app
from springtide.workloads.dataflows import GRID


def build(source=None, sink=None, **options) -> App:
    """The app; `rate`, `keys` and `service_s` are options, the last one by task if you like."""
    return dataflow_app.build(GRID, source=source, sink=sink, **options)


app = build()

if __name__ == "__main__":
    app.run()

"""Star: a hub, with spokes that lead in and spokes that lead out.

    springtide run examples/star.py --workers 3

                ┌─ in-1  8 ─┐            ┌─ out-1  16 ─┐
    source  8 ──┤           ├── hub  16 ─┤             ├── sink  32   events a second
                └─ in-2  8 ─┘            └─ out-2  16 ─┘

The hub gets each event twice and hands on both copies to either spoke, so the sink gets four.
"""

from springtide import App
from springtide.workloads import dataflow_app
from springtide.workloads.dataflows import STAR


def build(source=None, sink=None, **options) -> App:
    """The app; `rate`, `keys` and `service_s` are options, the last one by task if you like."""
    return dataflow_app.build(STAR, source=source, sink=sink, **options)


app = build()

if __name__ == "__main__":
    app.run()

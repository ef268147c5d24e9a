"""Diamond: a stream parts, and meets again.

    springtide run examples/diamond.py --workers 3

                ┌─ side-1  8 ─┐
                ├─ side-2  8 ─┤
    source  8 ──┤             ├── meet  32 ── sink  32   events a second
                ├─ side-3  8 ─┤
                └─ side-4  8 ─┘

Each event goes to all four sides, which work at the same time, and so comes to `meet` four times. The copies of an
event have the same `id` and differ in `path`, which tells the way that they have come.
"""

from springtide import App
from springtide.workloads import dataflow_app
from springtide.workloads.dataflows import DIAMOND


def build(source=None, sink=None, **options) -> App:
    """The app; `rate`, `keys` and `service_s` are options, the last one by task if you like."""
    return dataflow_app.build(DIAMOND, source=source, sink=sink, **options)


app = build()

if __name__ == "__main__":
    app.run()

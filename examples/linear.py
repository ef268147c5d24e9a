"""Linear: five tasks in a row, the simplest way through.

    springtide run examples/linear.py --workers 3

    source ─ task-1 ─ task-2 ─ task-3 ─ task-4 ─ task-5 ─ sink
       8        8        8        8        8        8       8   events a second

Every task counts the events of each key, takes 5 ms for each event, and hands it on. An epoch goes through the tasks
one after the other, so a longer row takes longer: `springtide.workloads.dataflows.linear` makes one of any length.
"""

from springtide import App
from springtide.workloads import dataflow_app
from springtide.workloads.dataflows import LINEAR


def build(source=None, sink=None, **options) -> App:
    """The app; `rate`, `keys` and `service_s` are options, the last one by task if you like."""
    return dataflow_app.build(LINEAR, source=source, sink=sink, **options)


app = build()

if __name__ == "__main__":
    app.run()

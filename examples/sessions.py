"""Sessions of users: a reducer of your own, with typed state; then the same over all users at once.

    springtide run examples/sessions.py            # one user at a time: easy to write
    springtide run examples/sessions.py:fast       # all users of an instance at once, in Arrow and NumPy

A session ends when its user has been silent for 20 seconds. It comes out as one row when the user's next
session begins. Both reducers give the same rows.
"""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide import App, Groups, Reduced, sinks, sources

GAP = timedelta(seconds=20)
STATE = {"began": datetime, "last": datetime, "events": int}
OUTPUT = {"user": int, "began": datetime, "last": datetime, "events": int}


def sessions_of_user(key, rows, state):
    """A user's rows of one epoch and the session that was open → the session open now, those that ended."""
    ended = []
    for at in sorted(row["at"] for row in rows):
        if state is None:
            state = {"began": at, "last": at, "events": 1}
        elif at - state["last"] > GAP:
            ended.append({**key, **state})
            state = {"began": at, "last": at, "events": 1}
        else:
            state = {"began": state["began"], "last": at, "events": state["events"] + 1}
    return state, ended


def sessions_of_all(groups: Groups) -> Reduced:
    """The same for all users together: open sessions and new events on one line, cut where a gap is.

    A piece is an open session or a single event. Sorted by user and time, a run of pieces without a gap
    is a session; each user's last one stays open, the others have ended.
    """
    known, events = np.flatnonzero(groups.known), numbers(groups.rows["at"])
    user = np.concatenate([known, groups.group_of_row])
    began = np.concatenate([numbers(groups.state["began"])[known], events])
    last = np.concatenate([numbers(groups.state["last"])[known], events])
    count = np.concatenate([numbers(groups.state["events"])[known], np.ones_like(events)])

    order = np.lexsort((began, user))
    user, began, last, count = user[order], began[order], last[order], count[order]
    new_user = np.append(True, user[1:] != user[:-1])
    gap = np.append(True, began[1:] - last[:-1] > GAP / timedelta(microseconds=1))
    first = np.flatnonzero(new_user | gap)
    final = np.append(first[1:], len(user)) - 1
    sessions = pa.table(
        {
            "user": groups.keys["user"].take(user[first]),
            "began": times(began[first]),
            "last": times(last[final]),
            "events": np.add.reduceat(count, first),
        }
    )
    is_open = pa.array(np.append(user[first][1:] != user[first][:-1], True))
    return Reduced(state=sessions.filter(is_open), output=sessions.filter(pc.invert(is_open)))


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column as whole numbers; times are microseconds."""
    return column.cast(pa.int64()).fill_null(0).to_numpy()


def times(us: np.ndarray) -> pa.Array:
    return pa.array(us).cast(pa.timestamp("us", "UTC"))


def build(source=None, sink=None, *, vectorised=False) -> App:
    app = App("sessions-fast" if vectorised else "sessions")
    rows = app.source("rows", source or sources.generator(200, keys=2_000, skew=0.8))
    users = rows.transform("visits", lambda df: df.selectExpr("key AS user", "event_time AS at")).key_by("user")
    if vectorised:
        sessions = users.reduce_batches("sessions", sessions_of_all, state=STATE, output=OUTPUT)
    else:
        sessions = users.reduce("sessions", sessions_of_user, state=STATE, output=OUTPUT)
    sessions.sink("longest", sink or sinks.console(top=10, by="events"))
    return app


app = build()
fast = build(vectorised=True)

if __name__ == "__main__":
    app.run()

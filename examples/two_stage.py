"""Two keyed steps in a row, two sources, and a stream that parts and meets again.

    springtide run examples/two_stage.py

    web ────┐         ┌─ views  (1 point)  ─┐
            ├─ events ┤                     ├─ points ─ score by user ─ users by level
    mobile ─┘         └─ orders (5 points) ─┘

The first keyed step adds up each user's points; a level is ten of them. The second counts the users of each
level. Whenever a user climbs, the first step tells the second: one less here, one more there. So the second
one's counts are right after every epoch, although it never sees a user.
"""

from pyspark.sql import DataFrame

from springtide import App, sinks, sources

POINTS_PER_LEVEL = 10


def events_of(rows: DataFrame) -> DataFrame:
    """Generated rows as events; one in five is an order."""
    return rows.selectExpr("key AS user", "IF(value < 0.2, 'order', 'view') AS kind")


def worth(points: int):
    return lambda events: events.selectExpr("user", f"{points}L AS points")


def climb(key, rows, state):
    """A user's points; the level that the user leaves, and the one that it reaches."""
    before = None if state is None else state["points"]
    after = (before or 0) + sum(row["points"] for row in rows)
    old = None if before is None else before // POINTS_PER_LEVEL
    new = after // POINTS_PER_LEVEL
    moves = []
    if new != old:
        moves.append({"level": new, "users": 1})
        if old is not None:
            moves.append({"level": old, "users": -1})
    return {"points": after}, moves


def count(key, rows, state):
    """The users of a level; a level without users is forgotten."""
    users = (0 if state is None else state["users"]) + sum(row["users"] for row in rows)
    return {"users": users} if users else None, [{**key, "users": users}]


def build(web=None, mobile=None, sink=None) -> App:
    app = App("two-stage")
    web_rows = app.source("web", web or sources.generator(300, seed=1, keys=500))
    mobile_rows = app.source("mobile", mobile or sources.generator(200, seed=2, keys=500))
    events = web_rows.union("all", mobile_rows).transform("events", events_of)

    views = events.filter("views", "kind = 'view'").transform("view-points", worth(1))
    orders = events.filter("orders", "kind = 'order'").transform("order-points", worth(5))
    points = views.union("points", orders)

    moves = points.key_by("user").reduce("score", climb, state={"points": int}, output={"level": int, "users": int})
    levels = moves.key_by("level").reduce("levels", count, state={"users": int}, output={"level": int, "users": int})
    levels.sink("biggest", sink or sinks.console(top=10, by="users"))
    return app


app = build()

if __name__ == "__main__":
    app.run()

"""Orders through Kafka: made-up ones go into a topic, and what comes out of it is counted into another one.

    springtide kafka fetch                            # once: Spark's connector and a broker
    springtide run examples/orders.py --kafka         # with a broker of its own, on this machine

With a Kafka that you have, create the topics `orders` and `totals` there and say where it is:

    SPRINGTIDE_KAFKA=host:9092 springtide run examples/orders.py

A reader of `totals` with `isolation.level=read_committed` sees every total once, whatever is killed meanwhile.
"""

from pyspark.sql import DataFrame

from springtide import App, agg, sinks, sources


def made_up(rows: DataFrame) -> DataFrame:
    """Orders from generated rows: who, and for how much."""
    return rows.selectExpr("concat('user-', key) AS user", "int(value * 100) AS amount")


def build(source=None, servers=None, totals=None) -> App:
    app = App("orders")
    # 200 orders a second by 50 users.
    made = app.source("rows", source or sources.generator(200, keys=50, skew=0.8)).transform("made-up", made_up)
    made.sink("into-kafka", sinks.kafka(servers, "orders", key="user"))

    orders = app.source("orders", sources.kafka(servers, "orders", schema="user STRING, amount INT"))
    spent = orders.key_by("user").aggregate("spent", orders=agg.count(), total=agg.sum("amount"))
    spent.sink("totals", totals or sinks.kafka(servers, "totals", key="user"))
    spent.sink("best", sinks.console(top=10, by="total"))
    return app


app = build()

if __name__ == "__main__":
    app.run()

"""Clicks by page in event-time windows, with clicks that come late and out of order.

    springtide run examples/clickstream.py

While a window is open, its counts so far go to the terminal. Once the newest click is 5 seconds past a
window's end, the window closes: its final row, and only that, goes to the Parquet dataset `clicks.parquet`,
which any tool can read. Clicks that come even later are counted as late: see `springtide status clickstream`.
"""

from pyspark.sql import DataFrame

from springtide import App, agg, sinks, sources

PAGES = ("home", "search", "product", "basket", "checkout")


def clicks_of(rows: DataFrame) -> DataFrame:
    """Made-up clicks from generated rows: who, where, when, and for how long."""
    names = ", ".join(f"'{page}'" for page in PAGES)
    return rows.selectExpr(
        "key AS user",
        f"element_at(array({names}), int(id % {len(PAGES)}) + 1) AS page",
        "event_time AS at",
        "int(value * 60) AS seconds",
    )


def build(source=None, updates=None, finals=None) -> App:
    app = App("clickstream")
    # 500 clicks a second by 200 users, each up to 3 seconds out of order.
    generated = sources.generator(500, keys=200, skew=1.0, disorder_s=3.0)
    clicks = app.source("rows", source or generated).transform("clicks", clicks_of)
    pages = (
        clicks.key_by("user", "page")
        .window("at", "10 seconds", late="5 seconds")
        .aggregate("pages", clicks=agg.count(), longest=agg.max("seconds"))
    )
    pages.sink("now", updates or sinks.console(top=10, by="clicks"))
    pages.sink("done", finals or sinks.parquet("clicks.parquet"), mode="final")
    return app


app = build()

if __name__ == "__main__":
    app.run()

"""Orders that are paid, late or never, in the currency of the day: two streams that meet in time.

    springtide run examples/payments.py

An order is paid if its payment comes within half a minute; one that is not comes out too, once, with nulls. Each order
is priced by the rate that was known when it was made.
"""

from springtide import App, sinks, sources

CURRENCIES = "element_at(array('EUR', 'USD', 'SEK'), CAST(1 + key % 3 AS INT))"


def build(orders=None, payments=None, rates=None, paid_sink=None, priced_sink=None) -> App:
    app = App("payments")
    orders = app.source("orders", orders or sources.generator(100, keys=5_000, seed=1))
    payments = app.source("payments", payments or sources.generator(80, keys=5_000, seed=2))
    rates = app.source("rates", rates or sources.generator(2, keys=3, seed=3))

    bought = orders.transform(
        "bought", lambda df: df.selectExpr("key AS order", f"{CURRENCIES} AS currency", "event_time AS at")
    )
    received = payments.transform("received", lambda df: df.selectExpr("key AS order", "event_time AS at"))
    quoted = rates.transform(
        "quoted", lambda df: df.selectExpr(f"{CURRENCIES} AS code", "event_time AS at", "id AS rate")
    )

    paid = bought.key_by("order").join(
        "paid",
        received.key_by("order"),
        how="left",
        time=("at", "at"),
        within=("0 seconds", "30 seconds"),
        late="5 seconds",
        suffix="_paid",
    )
    priced = bought.key_by("currency").as_of("priced", quoted.key_by("code"), time=("at", "at"), late="5 seconds")
    paid.sink("paid-orders", paid_sink or sinks.console(top=10, by="order"))
    priced.sink("priced-orders", priced_sink or sinks.console(top=10, by="rate"))
    return app


app = build()

if __name__ == "__main__":
    app.run()

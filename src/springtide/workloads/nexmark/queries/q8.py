"""New people who sell: people who opened an auction in the same ten seconds in which they registered."""

from springtide.dataflow.stream import Stream
from springtide.state.aggregates import functions as agg
from springtide.workloads.nexmark.inputs import Inputs


def query(inputs: Inputs) -> Stream:

    registered = inputs.person("id", "name", "date_time").transform(
        "registered", lambda df: df.selectExpr("id", "date_time", "name", "CAST(NULL AS INT) AS opened")
    )
    opened = inputs.auction("seller", "date_time").transform(
        "opened", lambda df: df.selectExpr("seller AS id", "date_time", "CAST(NULL AS STRING) AS name", "1 AS opened")
    )
    windows = registered.union("both", opened).key_by("id").window("date_time", "10 seconds", late="4 seconds")
    seen = windows.aggregate("seen", called=agg.max("name"), opened=agg.count("opened"))
    return seen.filter("sellers", "final AND called IS NOT NULL AND opened > 0").transform(
        "new-sellers", lambda df: df.selectExpr("id", "called AS name", "window_start", "window_end")
    )

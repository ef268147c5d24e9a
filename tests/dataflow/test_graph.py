import pytest

from springtide import PROCESSING_TIME, App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Keyed
from springtide.ids import BadName


def diamond() -> App:
    app = App("diamond")
    left = app.source("left", sources.generator(1)).filter("even", "key % 2 = 0")
    right = app.source("right", sources.generator(1))
    both = left.union("both", right)
    by_key = both.key_by("key").aggregate("by-key", n=agg.count())
    best = both.key_by("key").aggregate("best", v=agg.max("value"))
    joined = by_key.transform("a", lambda df: df.select("key")).union("again", best.transform("b", lambda df: df))
    joined.key_by("key").aggregate("second", n=agg.count()).sink("out", sinks.noop())
    both.sink("raw", sinks.noop())
    return app


def test_keyed_steps_run_by_depth() -> None:
    levels = diamond().graph().levels()
    assert [[k.name for k in level] for level in levels] == [["by-key", "best"], ["second"]]


def test_where_rows_come_from() -> None:
    graph = diamond().graph()
    assert graph.nearest_keyed("second") == {"by-key", "best"}
    assert graph.reads_sources("by-key")
    assert not graph.reads_sources("second")
    assert graph.reads_sources("raw")
    assert not graph.reads_sources("out")
    assert graph.consumers["both"] == ("by-key", "best", "raw")
    assert isinstance(graph["second"], Keyed)


def test_a_graph_needs_a_source_a_sink_and_users_of_every_step() -> None:
    with pytest.raises(BadGraph, match=r"at least one source"):
        App("empty").graph()
    app = App("no-sink")
    stream = app.source("rows", sources.generator(1))
    with pytest.raises(BadGraph, match=r"at least one sink"):
        app.graph()
    stream.sink("out", sinks.noop())
    stream.filter("unused", "true")
    with pytest.raises(BadGraph, match=r"'unused'.*thrown away"):
        app.graph()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "ünder", "x" * 81, None])
def test_names_must_be_safe(name: str) -> None:
    with pytest.raises(BadName, match=r"not a valid name"):
        App(name)
    with pytest.raises(BadName):
        App("app").source(name, sources.generator(1))


def test_a_name_can_be_used_once() -> None:
    app = App("app")
    app.source("rows", sources.generator(1))
    with pytest.raises(BadGraph, match=r"'rows'.*name of its own"):
        app.source("rows", sources.generator(1))


def test_mistakes_name_the_step() -> None:
    app = App("app")
    rows = app.source("rows", sources.generator(1))
    other = App("other").source("rows", sources.generator(1))
    with pytest.raises(BadGraph, match=r"'mix'.*streams of one app"):
        rows.union("mix", other)
    with pytest.raises(BadGraph, match=r"'rows'.*one or more column names"):
        rows.key_by()
    with pytest.raises(BadGraph, match=r"'rows'.*different column names"):
        rows.key_by("key", "key")
    with pytest.raises(BadGraph, match=r"'n'.*at least one aggregate"):
        rows.key_by("key").aggregate("n")
    with pytest.raises(BadGraph, match=r"'n'.*agg.count"):
        rows.key_by("key").aggregate("n", n="count")  # type: ignore[arg-type]
    with pytest.raises(BadGraph, match=r"'once'.*both column= and within="):
        rows.key_by("key").dedupe("once", column="at")
    with pytest.raises(BadGraph, match=r"'out'.*mode 'updates' or 'final'"):
        rows.sink("out", sinks.noop(), mode="all")
    with pytest.raises(BadGraph, match=r"'out'.*windowed stream"):
        rows.sink("out", sinks.noop(), mode="final")
    with pytest.raises(BadGraph, match=r"'out'.*a sink from springtide.sinks"):
        rows.sink("out", print)  # type: ignore[arg-type]
    with pytest.raises(BadGraph, match=r"'bad'.*a source of springtide.sources"):
        app.source("bad", 7)


def test_the_number_of_slices_is_a_power_of_two() -> None:
    with pytest.raises(ValueError, match=r"power of two"):
        App("app", slices=100)


def test_rows_that_keyed_steps_hand_on_as_they_are() -> None:
    app = App("merged")
    rows = app.source("rows", sources.generator(1))
    count = rows.key_by("key").aggregate("count", n=agg.count())
    again = rows.key_by("key").aggregate("again", n=agg.count())
    both = count.union("both", again, count)
    for name, stream in (
        ("all", both.union("more", again)),
        ("some", both.union("mixed", rows)),
        ("less", both.filter("few", "n < 3")),
    ):
        stream.sink(name, sinks.noop())
    graph = app.graph()
    assert graph.merged("count") == ("count",)
    assert graph.merged("more") == ("count", "again", "count", "again"), "twice, if they are there twice"
    assert graph.merged("mixed") == graph.merged("few") == graph.merged("rows") == ()


def test_times_that_cannot_be_meant_name_the_step() -> None:
    app = App("app")
    keyed = app.source("rows", sources.generator(1)).key_by("key")
    with pytest.raises(BadGraph, match=r"'rows'.*a column with event times, or PROCESSING_TIME, got None"):
        keyed.window(None, "1 minute")  # type: ignore[arg-type]
    with pytest.raises(BadGraph, match=r"'rows'.*sessions have no other clock"):
        keyed.session(PROCESSING_TIME, "1 minute")  # type: ignore[arg-type]
    with pytest.raises(BadGraph, match=r"'silent'.*idle= above zero"):
        app.source("silent", sources.generator(1), idle="0 seconds")

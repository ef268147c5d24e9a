"""Two drivers and one table in PostgreSQL: the one that was taken over changes nothing and holds nobody up."""

import threading
from collections import Counter

import psycopg
import pytest
from postgres_kit import Output, ask, recorded, tables

from springtide import sinks
from springtide.blocks.errors import TakenOver
from springtide.connectors.postgres.stage import PREFIX, Stage
from springtide.connectors.postgres.table import Target
from springtide.dataflow.errors import StepFailed

TAKEN = r"generation 1\) was taken over by the driver of generation 2"
ROWS = [("a", 1), ("b", 1)]


def log(dsn: str) -> Counter[tuple[str, int]]:
    return Counter(ask(dsn, "SELECT word, epoch FROM log"))  # type: ignore[arg-type]


def test_a_late_driver_is_refused_whatever_epoch_it_comes_with(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True, epoch="epoch")
    sink.publish(Output(0, ROWS))
    sink.publish(Output(0, ROWS, generation=2))
    for epoch in (0, 1):
        with pytest.raises(TakenOver, match=TAKEN):
            sink.publish(Output(epoch, ROWS, generation=1))
    sink.publish(Output(1, ROWS, generation=2))
    sink.publish(Output(0, ROWS, lineage="app/2", sink="other"))
    assert log(dsn) == {("a", 0): 2, ("b", 0): 2, ("a", 1): 1, ("b", 1): 1}
    assert tables(dsn) == {"log", "springtide_epochs"}


def test_a_late_driver_between_its_parts(dsn: str) -> None:
    """The successor publishes meanwhile, and removes the stage under the late one."""
    sink = sinks.postgres(dsn, "log", create=True, epoch="epoch")
    with pytest.raises(TakenOver, match=TAKEN):
        sink.publish(Output(0, ROWS, meanwhile=lambda: sink.publish(Output(0, ROWS, generation=2))))
    assert log(dsn) == {("a", 0): 1, ("b", 0): 1}


def test_a_late_transaction_after_the_successor_has_begun(dsn: str) -> None:
    """All parts of the late one are staged; the successor has come, and has published nothing yet."""
    sink = sinks.postgres(dsn, "log", create=True, epoch="epoch")
    sink.publish(Output(0, ROWS))
    begun, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        begun.set()
        assert go_on.wait(30)

    successor = threading.Thread(target=sink.publish, args=(Output(1, ROWS, generation=2, meanwhile=pause),))

    def begin() -> None:
        successor.start()
        assert begun.wait(30)

    with pytest.raises(TakenOver, match=TAKEN):
        sink.publish(Output(1, [("a", 1)], meanwhile=begin))
    assert log(dsn) == {("a", 0): 1, ("b", 0): 1}
    go_on.set()
    successor.join(30)
    assert log(dsn) == {("a", 0): 1, ("b", 0): 1, ("a", 1): 1, ("b", 1): 1}


def test_a_late_driver_leaves_the_successor_s_stage_alone(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True, epoch="epoch")

    def late() -> None:
        for epoch in (0, 5):
            with pytest.raises(TakenOver, match=TAKEN):
                sink.publish(Output(epoch, ROWS, generation=1))

    sink.publish(Output(0, ROWS, generation=2, meanwhile=late))
    assert log(dsn) == {("a", 0): 1, ("b", 0): 1}
    assert recorded(dsn) == [("app/1", "out", 0)]


def test_a_driver_that_was_paused_before_it_tidied_leaves_newer_stages(dsn: str) -> None:
    """It goes by the generation, whatever the epochs."""
    ask(dsn, "CREATE TABLE log (word text, n bigint)")
    target = Target(schema(dsn), "log")
    old, late, new = (Stage.new(target, "app/1", "out", *at) for at in ((1, 4), (2, 5), (3, 5)))
    with psycopg.connect(dsn, autocommit=True) as connection:
        for stage in (old, late, new):
            stage.create(connection, ["word", "n"])
        late.clear(connection)
    assert tables(dsn) == {"log", new.rows, new.parts}


def test_a_driver_that_was_paused_amid_its_transaction_is_not_waited_for_without_an_end(dsn: str) -> None:
    """The server ends its session, as it is idle; here after a tenth of a second."""
    sink = sinks.postgres(f"{dsn}%20-cidle_in_transaction_session_timeout%3D100ms", "log", create=True, epoch="epoch")
    sink.publish(Output(0, ROWS))
    paused = "-c idle_in_transaction_session_timeout=100ms"
    with psycopg.connect(dsn, options=f"{paused} -c search_path={schema(dsn)}") as connection:
        connection.execute("UPDATE springtide_epochs SET epoch = 1")
        sink.publish(Output(1, ROWS, generation=2))
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1")
    assert log(dsn) == {("a", 0): 1, ("b", 0): 1, ("a", 1): 1, ("b", 1): 1}


def schema(dsn: str) -> str:
    return str(ask(dsn, "SELECT current_schema()")[0][0])


def test_sessions_have_that_limit(dsn: str) -> None:
    ask(
        dsn,
        "CREATE TABLE log (word text, n bigint, how text DEFAULT current_setting("
        "'idle_in_transaction_session_timeout'))",
    )
    sinks.postgres(dsn, "log").publish(Output(0, ROWS))
    assert ask(dsn, "SELECT DISTINCT how FROM log") == [("1min",)]


def test_the_record_and_the_stages_of_an_earlier_release(dsn: str) -> None:
    """The record gets what it lacks, and counts; what attempts have left is removed."""
    ask(dsn, "CREATE TABLE log (word text, n bigint, epoch bigint)")
    ask(
        dsn,
        "CREATE TABLE springtide_epochs (lineage text, sink text, target text, epoch bigint NOT NULL, "
        "published timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (lineage, sink, target))",
    )
    ask(dsn, "INSERT INTO springtide_epochs VALUES ('app/1', 'out', 'log', 3)")
    owner = Stage.new(Target(schema(dsn), "log"), "app/1", "out", 1, 4).owner
    for name in ("", "_p"):
        ask(dsn, f"CREATE UNLOGGED TABLE {PREFIX}_{owner}_4_0123abcd{name} (n integer)")
    sink = sinks.postgres(dsn, "log", epoch="epoch")
    sink.publish(Output(3, ROWS))
    assert log(dsn) == {}
    sink.publish(Output(4, ROWS))
    assert log(dsn) == {("a", 4): 1, ("b", 4): 1}
    assert tables(dsn) == {"log", "springtide_epochs"}
    assert ask(dsn, "SELECT epoch, generation FROM springtide_epochs") == [(4, 1)]


def test_a_row_that_a_table_refuses_is_still_told_as_it_was(dsn: str) -> None:
    ask(dsn, "CREATE TABLE log (word text CHECK (word <> 'b'), n bigint)")
    with pytest.raises(StepFailed, match="check constraint"):
        sinks.postgres(dsn, "log").publish(Output(0, ROWS))

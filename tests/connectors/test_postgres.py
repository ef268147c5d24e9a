"""The PostgreSQL sink against a real server: whole epochs, each once, whatever is written again, or crashes."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from postgres_kit import Output, ask, recorded, tables

from springtide import sinks
from springtide.connectors.postgres.connection import Dsn
from springtide.dataflow.errors import StepFailed
from springtide.testing import Server, postgres


def test_rows_replace_those_of_their_key_and_a_repeated_epoch_touches_nothing(dsn: str) -> None:
    sink = sinks.postgres(dsn, "counts", key="word", create=True)
    sink.publish(Output(0, [("a", 1), ("b", 1), ("c", 1)]))
    ask(dsn, "CREATE TABLE audit (word text, op text)")
    ask(
        dsn,
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO audit VALUES (NEW.word, TG_OP); RETURN NEW; END $$",
    )
    ask(dsn, "CREATE TRIGGER noted AFTER INSERT OR UPDATE ON counts FOR EACH ROW EXECUTE FUNCTION note()")
    sink.publish(Output(1, [("a", 2), ("d", 1), ("ö\t\n\"'", 1)]))
    after = ask(dsn, "SELECT xmin, * FROM counts ORDER BY word")
    assert [row[1:] for row in after] == [("a", 2), ("b", 1), ("c", 1), ("d", 1), ("ö\t\n\"'", 1)]
    audit = Counter(ask(dsn, "SELECT * FROM audit"))
    assert audit == {("a", "UPDATE"): 1, ("d", "INSERT"): 1, ("ö\t\n\"'", "INSERT"): 1}
    for late in (Output(1, [("a", 9)]), Output(0, [("a", 9)])):
        sink.publish(late)
    assert ask(dsn, "SELECT xmin, * FROM counts ORDER BY word") == after
    assert Counter(ask(dsn, "SELECT * FROM audit")) == audit
    assert recorded(dsn) == [("app/1", "out", 1)]
    assert tables(dsn) == {"counts", "audit", "springtide_epochs"}


def test_without_a_key_rows_are_added_once_and_epochs_of_others_count_apart(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True, epoch="epoch")
    for output in (
        Output(0, [("a", 1), ("a", 1)]),
        Output(0, [("a", 1), ("a", 1)]),
        Output(1, []),
        Output(3, [("b", 1)]),
        Output(0, [("x", 7)], lineage="app/2"),
        Output(0, [("y", 7)], sink="other"),
    ):
        sink.publish(output)
    assert Counter(ask(dsn, "SELECT word, n, epoch FROM log")) == {
        ("a", 1, 0): 2,
        ("b", 1, 3): 1,
        ("x", 7, 0): 1,
        ("y", 7, 0): 1,
    }
    assert recorded(dsn) == [("app/1", "other", 0), ("app/1", "out", 3), ("app/2", "out", 0)]


def test_the_last_row_of_a_key_counts(dsn: str) -> None:
    sink = sinks.postgres(dsn, "counts", key=["word"], create=True, epoch="at")
    sink.publish(Output(4, [("a", 1), ("b", 1), ("a", 2), ("a", 3)]))
    assert sorted(ask(dsn, "SELECT * FROM counts")) == [("a", 3, 4), ("b", 1, 4)]


def test_rows_that_are_all_key_are_kept_once(dsn: str) -> None:
    sink = sinks.postgres(dsn, "seen", key=["n", "word"], create=True)
    for epoch in (0, 1):
        sink.publish(Output(epoch, [("a", 1), ("b", epoch)]))
    assert sorted(ask(dsn, "SELECT word, n FROM seen")) == [("a", 1), ("b", 0), ("b", 1)]


def test_readers_see_whole_epochs(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True)
    sink.publish(Output(0, [("a", 1), ("b", 1)]))
    seen: list[int] = []
    half = Output(1, [("c", 1), ("d", 1)], meanwhile=lambda: seen.append(len(ask(dsn, "SELECT * FROM log"))))
    sink.publish(half)
    assert (seen, len(ask(dsn, "SELECT * FROM log"))) == ([2], 4)


def test_a_part_that_is_written_again_counts_once_and_a_late_one_not_at_all(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True)
    output = Output(0, [("a", 1), ("b", 1)])
    output.meanwhile = lambda: output.write(0, output.table([("a", 1)]))
    sink.publish(output)
    assert Counter(ask(dsn, "SELECT * FROM log")) == {("a", 1): 1, ("b", 1): 1}
    with pytest.raises(StepFailed, match=r"step 'out'.*does not exist"):
        output.write(1, output.table([("b", 1)]))
    assert len(ask(dsn, "SELECT * FROM log")) == 2


def test_twins_that_write_one_part_at_the_same_time_count_once(dsn: str) -> None:
    """The second waits for the first to be done or gone."""
    sink = sinks.postgres(dsn, "log", create=True)
    output = Output(0, [("a", 1), ("b", 1)])

    def twins() -> None:
        both = [threading.Thread(target=output.write, args=(1, output.table([("b", 1)]))) for _ in range(4)]
        for one in both:
            one.start()
        for one in both:
            one.join()

    output.meanwhile = twins
    sink.publish(output)
    assert Counter(ask(dsn, "SELECT * FROM log")) == {("a", 1): 1, ("b", 1): 1}


def test_an_attempt_that_breaks_off_leaves_nothing_that_counts(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True)

    def crash() -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            sink.publish(Output(0, [("a", 1), ("b", 1)], meanwhile=crash))
    assert ask(dsn, "SELECT * FROM log") == []
    assert len(tables(dsn)) == 4, "only the last attempt's stage is left"
    sink.publish(Output(0, [("a", 1), ("b", 1)]))
    assert len(ask(dsn, "SELECT * FROM log")) == 2
    assert tables(dsn) == {"log", "springtide_epochs"}


def test_two_drivers_that_publish_one_epoch_publish_it_once(dsn: str) -> None:
    sink = sinks.postgres(dsn, "log", create=True)
    sink.publish(Output(0, []))
    failed: list[StepFailed] = []

    def publish() -> None:
        try:
            sink.publish(Output(1, [("a", 1), ("b", 1)]))
        except StepFailed as error:  # The other one has cleared up already.
            failed.append(error)

    both = [threading.Thread(target=publish) for _ in range(4)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    if len(failed) == len(both):
        publish()
    assert Counter(ask(dsn, "SELECT * FROM log")) == {("a", 1): 1, ("b", 1): 1}


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that a test may stop."""
    with postgres() as running:
        yield running


def test_a_server_that_crashes_between_stage_and_merge_loses_nothing(mortal: Server) -> None:
    server, dsn = mortal, mortal.dsn
    sink = sinks.postgres(dsn, "log", create=True)
    sink.publish(Output(0, [("a", 1)]))

    def crash() -> None:
        server.stop(crash=True)
        server.start()

    crash()
    assert ask(dsn, "SELECT word FROM log") == [("a",)]
    with pytest.raises(StepFailed, match=r"'out'.*publishing epoch 1.*parts \[0\] are gone.*crashed"):
        sink.publish(Output(1, [("b", 1)], meanwhile=crash))
    assert (ask(dsn, "SELECT word FROM log"), recorded(dsn)) == ([("a",)], [("app/1", "out", 0)])
    sink.publish(Output(1, [("b", 1)]))
    assert Counter(ask(dsn, "SELECT word FROM log")) == {("a",): 1, ("b",): 1}


def test_a_server_that_is_away_is_named_and_nothing_is_lost(mortal: Server) -> None:
    server, dsn = mortal, mortal.dsn
    sink = sinks.postgres(dsn, "log", create=True)
    server.stop()
    with pytest.raises(StepFailed, match=r"'out' failed while publishing epoch 0: cannot connect") as failed:
        sink.publish(Output(0, [("a", 1)]))
    server.start()
    assert server.password not in str(failed.value) + repr(failed.value)
    assert f":{server.port}" in str(failed.value)
    sink.publish(Output(0, [("a", 1)]))
    assert ask(dsn, "SELECT word FROM log") == [("a",)]


def test_an_epoch_is_on_disk_when_it_is_published_however_careless_the_server(dsn: str) -> None:
    assert ask(dsn, "SHOW synchronous_commit") == [("off",)]
    ask(dsn, "CREATE TABLE log (word text, n bigint, how text DEFAULT current_setting('synchronous_commit'))")
    sinks.postgres(dsn, "log").publish(Output(0, [("a", 1)]))
    assert ask(dsn, "SELECT how FROM log") == [("on",)]


def test_a_statement_and_a_dead_connection_are_not_waited_for_without_an_end(dsn: str) -> None:
    """Unless the dsn says otherwise: its own settings win, and those beside them stay."""

    def shown(text: str, setting: str) -> str:
        with Dsn(text).connected("out", "looking") as connection:
            (found,) = connection.execute(f"SHOW {setting}").fetchone() or ("",)
            return str(found)

    own = f"{dsn}%20-cstatement_timeout%3D5s"
    assert [shown(text, "statement_timeout") for text in (dsn, own)] == ["10min", "5s"]
    assert shown(dsn, "search_path") == shown(own, "search_path") != ""
    short = f"{dsn}%20-cstatement_timeout%3D50ms"
    with pytest.raises(StepFailed, match=r"step 'out' .* canceling statement due to statement timeout"):
        shown(short, "work_mem; SELECT pg_sleep(30)")

"""`bench nexmark`: what is said to Flink and what it answers, and Flink's own SQL against DuckDB's."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from springtide.bench.experiments.nexmark.with_flink import RUNNER, Flink, FlinkFailed, Process, flink, installed
from springtide.workloads.nexmark import files
from springtide.workloads.nexmark.oracle import Oracle
from springtide.workloads.nexmark.queries.catalogue import CATALOGUE

FAKE = """
import json, os, sys
print(json.dumps({"start_up_s": 1.5}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("stop"):
        open("stopped", "w").close()
        break
    if asked["run"] == "q6":
        print(json.dumps({"error": "not this one"}), flush=True)
    elif asked["run"] == "q9":
        sys.exit("out of memory")
    else:
        asked["zone"] = os.environ["TZ"]
        with open("asked", "w") as file:
            json.dump(asked, file)
        print(json.dumps({"seconds": 0.25}), flush=True)
"""
WINDOWS, JOIN, REVISED = "q5", "q3", "q19"


def fake(place: Path, script: str = FAKE) -> Process:
    """A process that answers as a script says."""
    (place / "runner.py").write_text(script)
    command = [sys.executable, "-c", f"import os; os.chdir({str(place)!r}); exec(open('runner.py').read())"]
    return Process(command, place / "log")


def test_a_turn_is_one_question_and_one_answer(tmp_path: Path) -> None:
    process = fake(tmp_path)
    contestant = Flink(process)
    assert process.start_up_s == 1.5
    assert contestant.turn(CATALOGUE["q1"], Path("/events"), Path("/rows")).seconds == 0.25
    said = json.loads((tmp_path / "asked").read_text())
    assert said == {"run": "q1", "directory": "/events", "output": "/rows", "zone": "UTC"}
    contestant.turn(CATALOGUE["q1"], Path("/events"), None)
    assert json.loads((tmp_path / "asked").read_text())["output"] is None
    process.close()
    assert (tmp_path / "stopped").exists()


def test_after_an_error_the_next_question_is_answered(tmp_path: Path) -> None:
    process = fake(tmp_path)
    with pytest.raises(FlinkFailed, match="not this one"):
        process.ask({"run": "q6"})
    assert process.ask({"run": "q0"}) == {"seconds": 0.25}
    process.close()


def test_a_process_that_ends_without_an_answer_is_quoted(tmp_path: Path) -> None:
    process = fake(tmp_path)
    with pytest.raises(FlinkFailed, match="out of memory"):
        process.ask({"run": "q9"})
    with pytest.raises(FlinkFailed, match="out of memory"):
        process.ask({"run": "q0"})
    process.close()


def test_a_process_that_does_not_start_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(FlinkFailed, match="no jars here"):
        fake(tmp_path, "raise SystemExit('no jars here')")


def test_every_query_that_flink_can_run_has_its_sql() -> None:
    for query in CATALOGUE.values():
        if query.flink_lacks is None:
            assert "SELECT" in query.sql("flink"), query.name
        else:
            with pytest.raises(FileNotFoundError):
                query.sql("flink")


def test_the_runner_imports_nothing_that_its_environment_lacks() -> None:
    imported = [line.split()[1] for line in RUNNER.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert {name.split(".")[0] for name in imported} <= {*sys.stdlib_module_names, "py4j", "pyarrow"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """Flink, up and warm; the test is skipped where it is not."""
    if (python := installed()) is None:
        pytest.skip("`make flink` has not fetched Flink")
    with flink(python, tmp_path_factory.mktemp("flink")) as contestant:
        yield contestant


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Fifty seconds of events in files whose order matters: windows close, and the day changes."""
    return Oracle(files.write(tmp_path_factory.mktemp("auction"), 20_000, seed=3, parts=12, events_s=400))


@pytest.mark.slow
@pytest.mark.parametrize("name", [WINDOWS, JOIN, REVISED])
def test_flink_gives_what_duckdb_gives(name: str, real: Flink, oracle: Oracle, tmp_path: Path) -> None:
    query, output = CATALOGUE[name], tmp_path / "rows"
    assert real.turn(query, oracle.directory, output).seconds > 0
    found = oracle.difference(query, pq.read_table(output))
    assert found.rows > 0
    assert found.equal, found
    assert real.turn(query, oracle.directory, None).seconds > 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows"], "files of changes are gone"

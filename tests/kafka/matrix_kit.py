"""Tiny apps over every kind of source, and what they must give; run as a script, on two workers in a box."""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.stream import Stream
from springtide.metrics.report import EpochReport
from springtide.testing.topics import consume, create, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = ("kafka_json", "kafka_raw", "json_files", "csv_files", "text_files", "generator", "stream")
PARSED = {"kafka_json", "json_files", "csv_files"}
"""Sources whose records may be malformed."""
DDL = "k STRING, n BIGINT"
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
GOOD = [("abc"[n % 3], n) for n in range(40)]
BAD_JSON = ["{", '{"k": "a", "n": 1} {"k": "b", "n": 2}', '{"k": "a", "n": "many"}', "[]", "{'k': 'a', 'n': 1}"]
BAD_CSV = ["a,many", "b,1,2", "c,1.5"]
START_S = 1_700_000_000.0
LONGEST_S = 90.0
"""How long one app may take; one that hangs fails its case."""


@dataclass(frozen=True)
class Case:
    """An app over some sources."""

    sources: tuple[str, ...]
    malformed: str = "count"
    """What becomes of malformed records: `count`, `fail` or `topic`."""
    share: float | None = None
    """Of rows that are kept; None if no query can do with less."""
    flaky: bool = False
    """A step fails the first time, and Spark repeats its task."""

    def __str__(self) -> str:
        which = "all" if self.sources == ALL else "+".join(self.sources)
        shed = "" if self.share is None else f"-shed-{self.share:g}"
        return f"{which}-{self.malformed}{shed}{'-flaky' if self.flaky else ''}"


@dataclass
class Outcome:
    """What an app gave. Plain JSON."""

    rows: dict[str, list[list[Any]]] = field(default_factory=dict)
    """By source: the rows of its stateless sink."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """By source: rows by key, from a keyed step."""
    most: dict[str, dict[str, int]] = field(default_factory=dict)
    """By source: the greatest number by key, from a second keyed step."""
    dead_letters: int = 0
    letters: int = 0
    """Records in the dead-letter topic."""
    epochs: int = 0
    accounts: list[list[Any]] = field(default_factory=list)
    """Query, offered, processed, shed, dead; summed over the epochs."""
    error: str = ""
    step: str = ""


def bad(source: str) -> list[str]:
    return {"kafka_json": BAD_JSON, "json_files": BAD_JSON, "csv_files": BAD_CSV}.get(source, [])


def good(source: str) -> list[tuple[str, int]]:
    if source != "generator":
        return GOOD
    spec = _generator().spec
    rows = spec.rows(0, len(GOOD), START_S).to_pylist()
    return [(str(row["key"]), row["id"]) for row in rows]


def _generator() -> Any:
    return sources.generator(100, limit=len(GOOD), keys=5, start_s=START_S, max_rows_per_epoch=25)


class Bench:
    """Runs cases on one session."""

    def __init__(self, spark: "SparkSession", servers: str, root: Path, **options: Any) -> None:
        self.spark, self.servers, self.root, self.options = spark, servers, root, options

    def run(self, case: Case) -> Outcome:
        here = self.root / f"{uuid4().hex[:8]}-{case}"
        here.mkdir(parents=True)
        app, out, dead = App("matrix"), {name: (sinks.memory(), sinks.memory(), sinks.memory()) for name in ALL}, ""
        if case.malformed == "topic":
            dead = create(self.servers, f"dead-{here.name}".replace("+", "-"), 1)
        for name in case.sources:
            rows = self._opened(app, name, case, here, dead)
            if case.flaky:
                rows = rows.map_batches(f"{name}-flaky", _flaky(here / f"{name}-failed"), SCHEMA)
            raw, counts, most = out[name]
            found = [rows.sink(f"{name}-out", raw)]
            found += [rows.key_by("k").aggregate(f"{name}-count", c=agg.count()).sink(f"{name}-counts", counts)]
            if len(case.sources) == 1:
                found += [rows.key_by("k").aggregate(f"{name}-max", m=agg.max("n")).sink(f"{name}-most", most)]
            if case.share is not None:
                for query in found:
                    query.with_minimum_accuracy(0.1)
        outcome = Outcome()
        try:
            reports = self._reports(app, case, here)
        except StepFailed as error:
            outcome.error, outcome.step = str(error), error.step
        except Exception as error:
            outcome.error = f"{type(error).__name__}: {error}"
        else:
            outcome.epochs = len(reports)
            outcome.dead_letters = sum(report.dead_letters for report in reports)
            outcome.accounts = _accounts(reports)
        for name in case.sources:
            raw, counts, most = out[name]
            outcome.rows[name] = [[row["k"], row["n"]] for row in raw.rows()]
            outcome.counts[name] = {row["k"]: row["c"] for row in counts.rows()}
            outcome.most[name] = {row["k"]: row["m"] for row in most.rows()}
        outcome.letters = len(consume(self.servers, dead)) if dead else 0
        return outcome

    def _reports(self, app: App, case: Case, here: Path) -> list[EpochReport]:
        places = {"checkpoint": str(here / "checkpoint"), "local": str(here / "local")}
        running = app.start(self.spark, until="available", **places, **self.options)
        if case.share is not None:
            running.shed(dict.fromkeys(_queries(case), case.share))
        try:
            return running.wait(LONGEST_S)
        except TimeoutError:
            running.query.stop()
            raise

    def _opened(self, app: App, name: str, case: Case, here: Path, dead: str) -> Stream:
        """A source with the columns k and n, in two epochs or more."""
        some = {"maxFilesPerTrigger": "1"}
        mode = "fail" if case.malformed == "fail" else "count"
        if name.startswith("kafka"):
            topic = create(self.servers, f"in-{here.name}-{name}".replace("+", "-"), 2)
            lines = _json() + bad(name) if name == "kafka_json" else [f"{k} {n}" for k, n in GOOD]
            produce(self.servers, topic, lines)
            few = {"maxOffsetsPerTrigger": "25"}
            if name == "kafka_raw":
                raw = app.source(name, sources.kafka(self.servers, topic, format="raw", **few))
                return _split(raw, "CAST(value AS STRING)")
            how = f"topic:{dead}" if case.malformed == "topic" else mode
            return app.source(name, sources.kafka(self.servers, topic, schema=DDL, malformed=how, **few))
        if name == "generator":
            made = app.source(name, _generator())
            return made.transform("named", lambda df: df.selectExpr("CAST(key AS STRING) AS k", "id AS n"))
        if name == "json_files":
            path = _files(here / name, [*_json(), *BAD_JSON])
            return app.source(name, sources.files(path, format="json", schema=DDL, malformed=mode, **some))
        if name == "csv_files":
            path = _files(here / name, [*(f"{k},{n}" for k, n in GOOD), *BAD_CSV])
            return app.source(name, sources.files(path, format="csv", schema=DDL, malformed=mode, **some))
        if name == "text_files":
            path = _files(here / name, [f"{k} {n}" for k, n in GOOD])
            return _split(app.source(name, sources.files(path, **some)), "value")
        path = _files(here / name, _json())
        return app.source(name, sources.stream(lambda spark: spark.readStream.schema(DDL).options(**some).json(path)))


def _json() -> list[str]:
    return [json.dumps({"k": k, "n": n}) for k, n in GOOD]


def _split(rows: Stream, text: str) -> Stream:
    halves = (f"split({text}, ' ')[0] AS k", f"CAST(split({text}, ' ')[1] AS BIGINT) AS n")
    return rows.transform(f"{rows.step}-split", lambda df: df.selectExpr(*halves))


def _files(directory: Path, lines: Sequence[str]) -> str:
    """Two files, with good and bad lines in both."""
    directory.mkdir()
    for number in range(2):
        (directory / f"{number}").write_text("\n".join(lines[number::2]) + "\n")
    return str(directory)


def _flaky(mark: Path) -> Callable[[pa.Table], pa.Table]:
    def flaky(table: pa.Table) -> pa.Table:
        if not mark.exists():
            mark.touch()
            raise ConnectionError("the first attempt fails")
        return table

    return flaky


def _queries(case: Case) -> list[str]:
    sorts = ("out", "counts", "most") if len(case.sources) == 1 else ("out", "counts")
    return [f"{name}-{sort}" for name in case.sources for sort in sorts]


def _accounts(reports: Sequence[EpochReport]) -> list[list[Any]]:
    total: dict[str, list[int]] = {}
    for report in reports:
        for q in report.queries:
            one = (q.offered, q.processed, q.shed, q.dead_letters)
            total[q.query] = [a + b for a, b in zip(total.get(q.query, [0] * 4), one, strict=True)]
    return [[query, *numbers] for query, numbers in sorted(total.items())]


def check(case: Case, found: Outcome) -> None:
    """Every record is processed, shed or a dead letter, once."""
    if case.malformed == "fail":
        assert any(found.step.startswith(name) for name in case.sources), found.error
        assert "expected one JSON object" in found.error or "Malformed records are detected" in found.error
        return
    assert not found.error, found.error
    assert found.epochs >= 2
    malformed = {name: len(bad(name)) for name in case.sources}
    if case.share is not None:  # What is shed is not looked into. All queries of a source keep the same records.
        looked = {name: max(a[-1] for a in found.accounts if a[0].startswith(f"{name}-")) for name in case.sources}
        assert all(looked[name] <= malformed[name] for name in case.sources)
        malformed = looked
    assert found.dead_letters == sum(malformed.values())
    assert found.letters == (len(BAD_JSON) if case.malformed == "topic" else 0)
    for name in case.sources:
        rows, given = Counter(map(tuple, found.rows[name])), good(name)
        if case.share is None:
            assert rows == Counter(given), name
            assert found.counts[name] == Counter(k for k, _ in given), name
            assert found.most[name] in ({}, {k: max(n for key, n in given if key == k) for k, _ in given}), name
        else:
            assert not rows - Counter(given), name
    if case.share is not None:
        accounts = [account for account in found.accounts if not account[0].endswith("-dead-letters")]
        assert [query for query, *_ in accounts] == sorted(_queries(case))
        for query, offered, processed, shed, dead in accounts:
            name, _, sort = query.rpartition("-")
            assert offered == len(good(name)) + len(bad(name)), query
            assert dead <= len(bad(name)), query
            assert offered == processed + shed + dead, query
            assert processed == {"out": len(found.rows[name]), "counts": sum(found.counts[name].values())}.get(
                sort, processed
            ), query


def main() -> None:
    """Run cases on two workers, and write what came of them."""
    from springtide.connectors.kafka.jars import connector_settings
    from springtide.engine.executors import cluster
    from springtide.engine.spark.session import SessionConfig, box, make_session

    parser = argparse.ArgumentParser()
    parser.add_argument("servers")
    parser.add_argument("root", type=Path)
    parser.add_argument("cases")
    arguments = parser.parse_args()
    cases = [Case(**{**case, "sources": tuple(case["sources"])}) for case in json.loads(arguments.cases)]
    cluster.WARM_ROUNDS = 1  # Cold workers are slow, and as right as warm ones.
    settings = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = make_session("matrix", SessionConfig(box(2), settings | connector_settings(settings), workers=2))
    bench = Bench(spark, arguments.servers, arguments.root / "runs", workers=2)
    for number, case in enumerate(cases):
        (arguments.root / f"{number}.json").write_text(json.dumps(asdict(bench.run(case))))
    spark.stop()


if __name__ == "__main__":
    main()

"""Passwords and keys that an app was given come out nowhere: not in `ps`, on the terminal, in files, in answers."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_process import AppProcess
from process_tree import command_line, tree
from typer.testing import CliRunner
from waiting import wait_until

from springtide.cli.main import cli
from springtide.control.api.client import ControlClient
from springtide.testing.database import Server
from springtide.testing.kafka import Broker
from springtide.testing.topics import create, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
PATIENCE_S = 120.0
MARK = "Xq7planted"
"""Part of every secret here."""
LOUD = ["--verbose", "--traceback", "--log-level", "INFO"]
CONF = f"spark.hadoop.fs.s3a.secret.key={MARK}-object-store-key"
"""What a person types is in `ps` as long as that command runs; it goes no further."""
VERBS = ["status", "workers", "plan", "queries", "history", "migrations", "explain"]

FAILING = """
from springtide import App, agg, sinks, sources

app = App("tide")
rows = app.source("rows", sources.generator(500, keys=50, limit=1000))
counts = rows.key_by("key").aggregate("counts", n=agg.count())
counts.sink("table", sinks.postgres("postgresql://tide:{mark}-password@127.0.0.1:9/db?connect_timeout=2", "counts"))
"""
AWAY = """
from springtide import App, sinks, sources

app = App("tide")
login = 'PlainLoginModule required username="tide" password="{mark}-login";'
rows = app.source(
    "rows",
    sources.kafka(
        "127.0.0.1:9", "rows", format="raw",
        client={{"sasl.password": "{mark}-password", "sasl.username": "tide", "sasl.mechanism": "PLAIN",
                 "security.protocol": "SASL_PLAINTEXT"}},
        **{{"kafka.sasl.jaas.config": login}},
    ),
)
rows.sink("out", sinks.noop())
"""
RUNNING = """
from springtide import App, agg, sinks, sources

app = App("tide")
login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="tide" password="{mark}-login";'
secret = {{"kafka.sasl.jaas.config": login, "kafka.ssl.key.password": "{mark}-key"}}
client = {{"sasl.password": "{mark}-client"}}
rows = app.source(
    "rows", sources.kafka("{servers}", "rows", schema="user STRING", malformed="topic:bad", client=client, **secret)
)
counts = rows.key_by("user").aggregate("counts", n=agg.count())
counts.sink("topic", sinks.kafka("{servers}", "counts", key="user", client=client))
counts.sink("table", sinks.postgres("{dsn}", "counts", create=True))
"""


def around(text: str, secret: str = MARK) -> str:
    """What comes before a secret in a text; empty if there is none."""
    at = text.find(secret)
    return "" if at < 0 else text[max(0, at - 300) : at + 50]


def files(directory: Path) -> Iterator[tuple[Path, str]]:
    """The files below a directory with what is in them, but for what the person wrote."""
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # Some are there for a moment.
            if path.is_file() and path.suffix != ".py":
                yield path, path.read_text(errors="replace")


def leaked(app: AppProcess, secret: str = MARK) -> list[str]:
    """Command lines of what the app has started, and files, that hold a secret."""
    started = [pid for pid in tree(app.process.pid) if pid != app.process.pid]
    own = command_line(app.process.pid)  # Also that of a child at the moment when it is made: what the person typed.
    lines = [line for line in map(command_line, started) if secret in line and line != own]
    return lines + [f"{path}: {around(text, secret)}" for path, text in files(app.directory) if secret in text]


@pytest.mark.parametrize("app", [FAILING, pytest.param(AWAY, marks=pytest.mark.slow)], ids=["postgres", "kafka"])
def test_an_app_that_fails(app: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(app.format(mark=MARK))
    with AppProcess(tmp_path, "--conf", CONF, *LOUD) as failing:
        seen: set[str] = set()

        def ended() -> bool:
            seen.update(leaked(failing))
            return failing.process.poll() is not None

        wait_until("the app has failed", ended, PATIENCE_S, lambda: failing.said[-3000:])
        assert failing.ended() == 1
        assert "StepFailed" in failing.said, "there is a traceback to look at"
        assert around(failing.said) == ""
        assert seen == set()
        assert leaked(failing) == []


@pytest.mark.slow
def test_an_app_that_runs(tmp_path: Path, server: Server, dsn: str) -> None:
    with Broker() as broker:
        for topic in ("rows", "bad", "counts"):
            create(broker.servers, topic)
        produce(broker.servers, "rows", [*(f'{{"user": "u{i % 7}"}}' for i in range(500)), "junk"])
        (tmp_path / "app.py").write_text(RUNNING.format(mark=MARK, servers=broker.servers, dsn=dsn))
        with AppProcess(tmp_path, "--workers", "2", "--conf", CONF, *LOUD) as app, contextlib.chdir(tmp_path):
            app.until(r"^epoch \d+ ")
            client = ControlClient.find(tmp_path / ".springtide" / "tide")
            told = [client.status(), client.workers(), client.plan(), client.migration(), client.metrics()]
            said = repr(told)
            for verb in VERBS:
                said += CliRunner().invoke(cli, [verb, "tide", "--verbose"], env={"COLUMNS": "300"}).output
            found = [leaked(app, secret) for secret in (MARK, server.password)]
            app.send(signal.SIGTERM, group=False)
            app.ended()
            assert "sasl.jaas.config" in app.said, "Spark's log tells its settings"
            for secret in (MARK, server.password):
                assert around(said + app.said, secret) == ""
                found.append(leaked(app, secret))
            assert found == [[], [], [], []]

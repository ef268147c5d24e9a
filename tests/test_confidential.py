"""Secrets are recognised, and taken out of texts, representations and logs."""

import json
import logging

import pytest

from springtide import sinks, sources
from springtide.confidential import HIDDEN, Secrets, hide, hide_in, is_secret, masked_url, remember
from springtide.connectors.kafka.delivery import Address
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.engine.spark.session import SessionConfig
from springtide.logs import room_logger

PLANTED = "hunter2-Zx9!qv/7"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "kafka.sasl.jaas.config",
        "spark.authenticate.secret",
        "AWS_SECRET_ACCESS_KEY",
        "spark.hadoop.fs.s3a.access.key",
        "fs.azure.account.key.x.dfs.core.windows.net",
        "fs.azure.sas.fixed.token.x",
        "sasl.oauthbearer.client.secret",
        "ssl.key.pem",
        "API_KEY",
        "basic.auth.user.info",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["bootstrap.servers", "spark.master", "group.id", "security.protocol", "keys", "sasl.mechanism", "sassy"]
)
def test_other_names(name: str) -> None:
    assert not is_secret(name)


def test_a_secret_is_hidden_however_it_is_written() -> None:
    secrets = Secrets()
    assert secrets.hide(f"as it is {PLANTED}") == f"as it is {PLANTED}"
    value = 'a"b\\c/d e+fgh'
    secrets.remember(value)
    for text in (value, json.dumps(value), repr(value), "a%22b%5Cc%2Fd%20e%2Bfgh"):
        assert secrets.hide(f"<{text}>").strip("<>\"'") == HIDDEN


def test_a_short_secret_is_hidden_as_a_word_and_leaves_others_readable() -> None:
    secrets = Secrets()
    secrets.remember("postgres")
    assert secrets.hide("password=postgres at postgresql://") == "password=… at postgresql://"
    secrets.remember("abc")
    assert secrets.hide("abc") == "abc", "too short: it is in every text"


def test_a_login_line_of_java_hides_its_password() -> None:
    secrets = Secrets()
    login = f'org.apache.kafka.PlainLoginModule required username="tide" password="{PLANTED}";'
    secrets.remember_settings({"kafka.sasl.jaas.config": login, "group.id": "readers"})
    assert PLANTED not in secrets.hide(f"could not log in with {PLANTED}")
    assert secrets.hide("readers") == "readers"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://tide:p@ss:w0rd@host/x", "ftp://tide:…@host/x"),
        ("s3://bucket/x?secret=abcdef&region=eu", "s3://bucket/x?secret=…&region=eu"),
        ("abfs://box@host/x?sv=2024&sig=abcdef", "abfs://box@host/x?sv=2024&sig=…"),
        ("/plain/path", "/plain/path"),
        ("file:///plain/path:with@both", "file:///plain/path:with@both"),
    ],
)
def test_urls_without_their_secrets(url: str, shown: str) -> None:
    assert masked_url(url) == shown
    secrets = Secrets()
    secrets.remember_url(url)
    assert secrets.hide(url) == shown


def test_numbers_in_json_stay_numbers() -> None:
    remember("73519428")
    assert hide_in({"rows": 73519428, "told": ["is 73519428"], "none": None}) == {
        "rows": 73519428,
        "told": ["is …"],
        "none": None,
    }


def test_descriptions_show_no_secrets() -> None:
    client = {"sasl.username": "tide", "sasl.password": PLANTED}
    login = f'required password="{PLANTED}";'
    described = [
        sources.kafka("host:9092", "rows", format="raw", client=client, **{"kafka.sasl.jaas.config": login}),
        sinks.kafka("host:9092", "rows", client=client),
        Address("host:9092", "rows", "name", client),
        sinks.postgres(f"postgresql://tide:{PLANTED.replace('/', '%2F')}@host/db", "rows"),
        sinks.parquet(f"ftp://tide:{PLANTED}@host/rows"),
        sources.files(f"ftp://tide:{PLANTED}@host/rows", secret=PLANTED),
        SessionConfig(settings={"spark.hadoop.fs.s3a.secret.key": PLANTED}),
    ]
    for one in described:
        assert "hunter2" not in repr(one)
    assert "'sasl.username': 'tide'" in repr(described[0]), "what is no secret is shown"


def test_errors_show_no_secrets() -> None:
    remember(PLANTED)
    error = StepFailed("out", "publishing", f"the server says: no entry for {PLANTED}", f"  at x: {PLANTED}")
    assert PLANTED not in str(error) + repr(error)
    wrong = sources.kafka("h:1", "t", format="raw", **{"kafka.ssl.key.password": 12345678})  # type: ignore[arg-type]
    with pytest.raises(BadGraph, match=r"option kafka\.ssl\.key\.password as a string, got …"):
        wrong.checked("rows")


def test_logs_show_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    remember(PLANTED)
    log = room_logger("springtide.engine.somewhere")
    with caplog.at_level(logging.INFO, "springtide.engine"):
        try:
            raise RuntimeError(f"refused {PLANTED}")
        except RuntimeError:
            log.exception("with %s, %d times", PLANTED, 2)
    assert "with …, 2 times" in caplog.text
    assert "RuntimeError: refused …" in caplog.text
    assert hide(PLANTED) == HIDDEN

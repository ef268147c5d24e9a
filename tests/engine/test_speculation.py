"""Spark's speculation: off with several workers, refused if somebody insists, left alone without them."""

from types import SimpleNamespace
from typing import Any

import pytest

from springtide.engine.lifecycle.config import RunConfig, check_speculation
from springtide.engine.pool.hire import ElasticPoolConfig
from springtide.engine.spark.session import SPECULATION, SessionConfig, box, session_settings
from springtide.migration.errors import Refused

ALONE, SEVERAL = RunConfig("checkpoint"), RunConfig("checkpoint", pool=ElasticPoolConfig(2))


def session(**settings: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: settings))


def test_a_session_with_workers_does_without_it_whatever_the_clusters_defaults_are() -> None:
    assert session_settings(SessionConfig(box(2), workers=2), None)[SPECULATION] == "false"
    assert SPECULATION not in session_settings(SessionConfig("spark://a:7077"), None)


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_one_that_has_it_is_refused_for_several_workers(value: str) -> None:
    with pytest.raises(Refused, match=r"expected spark\.speculation=false for an app with workers=N, got true: .*"):
        check_speculation(SEVERAL, session(**{SPECULATION: value}))
    check_speculation(ALONE, session(**{SPECULATION: value}))


def test_one_that_does_not_have_it_is_fine() -> None:
    check_speculation(SEVERAL, session())
    check_speculation(SEVERAL, session(**{SPECULATION: "false"}))

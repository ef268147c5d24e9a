"""The modules beside the tests made importable (importlib mode leaves sys.path alone), and a site to damage."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "spark")]

if TYPE_CHECKING:
    from chaos_kit import Site
    from pyspark.sql import SparkSession


@pytest.fixture
def site(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Site":
    """The chaos app on the shared session, with a checkpoint and sinks of its own."""
    from chaos_kit import Site

    return Site(spark, tmp_path, monkeypatch)

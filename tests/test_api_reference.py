"""`docs/api.md` is what the docstrings say, and nothing public is missing from it."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import springtide

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "api_reference.py"
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^#+ `([\w.]+)`$", PAGE, re.MULTILINE)


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_page_that_is_out_of_date_is_told_in_one_line_and_put_right(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "api.md"
    page.write_text(PAGE.replace("## App", "## Application"), encoding="utf-8")
    monkeypatch.setattr(script, "PAGE", page)
    assert script.main(["--check"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", script.OUT_OF_DATE + "\n")
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    assert page.read_text(encoding="utf-8") == PAGE


@pytest.mark.parametrize("name", springtide.__all__)
def test_a_public_name_has_an_entry(name: str) -> None:
    assert {name, f"springtide.{name}"} & set(HEADINGS)


@pytest.mark.parametrize("module", ["agg", "sinks", "sources"])
def test_what_a_public_module_lists_has_an_entry(module: str) -> None:
    assert {f"{module}.{name}" for name in getattr(springtide, module).__all__} <= set(HEADINGS)


def test_the_page_is_the_same_on_every_machine() -> None:
    assert str(ROOT) not in PAGE
    assert " at 0x" not in PAGE

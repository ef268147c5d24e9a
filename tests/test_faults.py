"""Failpoints: nothing happens unless the environment says so, and then exactly what it says."""

import errno
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import wait_until

from springtide import faults
from springtide.faults import ENVIRONMENT, MARKERS, POINTS, around, fire


@pytest.fixture(autouse=True)
def nothing_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.delenv(MARKERS, raising=False)


def arm(monkeypatch: pytest.MonkeyPatch, spec: str, markers: Path | None = None) -> None:
    monkeypatch.setenv(ENVIRONMENT, spec)
    if markers is not None:
        monkeypatch.setenv(MARKERS, str(markers))


def test_nothing_happens_by_itself() -> None:
    for point in POINTS:
        fire(point, 1)
        with around(point, 1):
            pass


def test_another_point_or_another_epoch_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, "block.put=oserror@3,manifest.put=oserror")
    fire("block.put", 2)
    fire("block.put")
    fire("gc.delete", 3)
    with pytest.raises(OSError, match=r"block\.put"):
        fire("block.put", 3)
    for epoch in (None, 0, 3):
        with pytest.raises(OSError, match=r"manifest\.put"):
            fire("manifest.put", epoch)


def test_an_io_error_comes_before_the_effect_and_a_late_one_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    arm(monkeypatch, "block.put=oserror,manifest.put=late-oserror")
    with pytest.raises(OSError, match="no space left") as early, around("block.put"):
        done.append("block")
    with pytest.raises(OSError, match="timed out") as late, around("manifest.put"):
        done.append("manifest")
    assert (early.value.errno, late.value.errno, done) == (errno.ENOSPC, errno.ETIMEDOUT, ["manifest"])
    fire("manifest.put")


def test_an_error_of_the_operation_itself_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, "manifest.put=late-oserror")
    with pytest.raises(KeyError), around("manifest.put"):
        raise KeyError("its own")


def test_with_markers_a_fault_that_heals_comes_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arm(monkeypatch, "block.written=once,manifest.put=late-oserror", tmp_path)
    with pytest.raises(RuntimeError, match=r"failpoint block\.written"):
        fire("block.written")
    fire("block.written")
    with pytest.raises(OSError, match="timed out"), around("manifest.put"):
        pass
    with around("manifest.put"):
        pass
    assert sorted(os.listdir(tmp_path)) == ["block.written", "manifest.put"], "a test can tell that they fired"


def test_a_kill_is_sudden_and_leaves_its_mark(tmp_path: Path) -> None:
    program = (
        "import atexit; from springtide.faults import fire\n"
        "atexit.register(lambda: print('farewell', flush=True))\n"
        "fire('manifest.after', 1); print('one', flush=True); fire('manifest.after', 2); print('two', flush=True)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        ENVIRONMENT: "manifest.after=kill@2",
        MARKERS: str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "one\n")
    assert os.listdir(tmp_path) == ["manifest.after"]


def test_who_is_held_goes_on_when_the_order_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arm(monkeypatch, "copy.written=hold", tmp_path)
    fire("copy.written")
    order, mark = tmp_path / "copy.written.hold", tmp_path / f"copy.written.{os.getpid()}"
    order.write_text("0")
    fire("copy.written")
    assert not mark.exists(), "other processes are meant"
    order.write_text(f"0 {os.getppid()}")
    with ThreadPoolExecutor(1) as pool:
        passing = pool.submit(fire, "copy.written")
        wait_until("the mark", mark.exists, 10.0)
        assert not passing.done()
        order.unlink()
        passing.result(10.0)


def test_every_point_in_the_code_is_in_the_catalogue_and_the_other_way_round() -> None:
    source = Path(faults.__file__).parent
    text = "\n".join(path.read_text() for path in source.rglob("*.py") if path.name != "faults.py")
    assert set(re.findall(r"faults\.(?:fire|around)\(\s*\"([^\"]+)\"", text)) == set(POINTS)


def test_the_example_in_the_documentation_is_one_that_works() -> None:
    examples = re.findall(r"([a-z.]+)=(?:kill|oserror|late-oserror|once)\b", faults.__doc__ or "")
    assert examples
    assert set(examples) <= set(POINTS)

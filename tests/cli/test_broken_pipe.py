import os
import subprocess
import sys

MAIN = "from springtide.cli.main import cli; cli(prog_name='springtide')"


def test_a_reader_that_goes_away_is_no_fault() -> None:
    """As in `springtide bench shed --help | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        found = subprocess.run(
            [sys.executable, "-c", MAIN, "bench", "shed", "--help"], stdout=writing, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(writing)
    assert (found.returncode, found.stderr) == (1, "")

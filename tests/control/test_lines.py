"""Numbered lines in the checkpoint: rewritten, gone on with, read back in order."""

from pathlib import Path

import pytest

from springtide.blocks.store import LocalStore
from springtide.control.lines import Lines


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_lines_come_back_in_order_the_last_of_each_number(tmp_path: Path, chunk: int) -> None:
    lines = Lines(LocalStore(tmp_path), "log", chunk)
    for number in range(1, 9):
        lines.put(number, {"n": number, "told": "once"})
    lines.put(3, {"n": 3, "told": "twice"})
    expected = [{"n": n, "told": "twice" if n == 3 else "once"} for n in range(1, 9)]
    assert list(Lines(LocalStore(tmp_path), "log", chunk).read()) == expected


def test_a_later_driver_keeps_what_it_remembers(tmp_path: Path) -> None:
    Lines(LocalStore(tmp_path), "log", 10).put(1, {"n": 1})
    later = Lines(LocalStore(tmp_path), "log", 10)
    for fields in list(later.read()):
        later.remember(fields["n"], fields)
    later.put(2, {"n": 2})
    assert list(later.read()) == [{"n": 1}, {"n": 2}]

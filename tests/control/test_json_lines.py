"""Numbered lines in the checkpoint: rewritten, gone on with, read back in order."""

from pathlib import Path

import pytest

from springtide.blocks.store import LocalStore
from springtide.control.json_lines import Lines


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_lines_come_back_in_order_the_last_of_each_number(tmp_path: Path, chunk: int) -> None:
    lines = Lines(LocalStore(tmp_path), "log", chunk)
    for number in range(1, 9):
        lines.put(number, {"n": number, "told": "once"})
    lines.put(3, {"n": 3, "told": "twice"})
    expected = [{"n": n, "told": "twice" if n == 3 else "once"} for n in range(1, 9)]
    assert list(Lines(LocalStore(tmp_path), "log", chunk).read()) == expected


def test_the_oldest_files_go(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    lines = Lines(store, "log", chunk=2, kept=3)
    for number in range(1, 12):
        lines.put(number, {"n": number})
        assert len(store.list("log")) <= 3
    assert [fields["n"] for fields in lines.read()] == [6, 7, 8, 9, 10, 11]
    assert lines.oldest == 6, "nor are they remembered"
    lines.put(7, {"n": 7, "told": "twice"})
    assert [fields["n"] for fields in lines.read()] == [6, 7, 8, 9, 10, 11]


def test_a_later_driver_keeps_what_it_remembers(tmp_path: Path) -> None:
    Lines(LocalStore(tmp_path), "log", 10).put(1, {"n": 1})
    later = Lines(LocalStore(tmp_path), "log", 10)
    for fields in list(later.read()):
        later.remember(fields["n"], fields)
    later.put(2, {"n": 2})
    assert list(later.read()) == [{"n": 1}, {"n": 2}]

"""The page about metrics says what the catalogue says: run this file to write its tables anew."""

import re
from pathlib import Path

import pytest

from springtide.metrics.catalogue import CATALOGUE
from springtide.metrics.epoch_figures import FIGURES

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
TABLES = {
    "figures": [
        ("name", "unit", "meaning", "counted by"),
        *((f"`{f.name}`", f.unit, f.meaning, f.counted) for f in FIGURES),
    ],
    "series": [
        ("name", "type", "labels", "unit", "meaning", "counted by"),
        *(
            (f"`springtide_{s.name}`", s.kind, ", ".join(f"`{x}`" for x in s.labels), s.unit, s.meaning, s.counted)
            for s in CATALOGUE
        ),
    ],
}


def table(name: str) -> str:
    """A table in Markdown, between the marks of its place in the page."""
    head, *rows = TABLES[name]
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join([f"<!-- {name} -->", *(f"| {' | '.join(line)} |" for line in lines), f"<!-- end of {name} -->"])


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_catalogue(name: str) -> None:
    assert table(name) in PAGE.read_text(), f"run {Path(__file__).name} to write the table anew"


if __name__ == "__main__":
    text = PAGE.read_text()
    for each in TABLES:
        text = re.sub(f"<!-- {each} -->.*<!-- end of {each} -->", lambda _: table(each), text, flags=re.S)  # noqa: B023
    PAGE.write_text(text)

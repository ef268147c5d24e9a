"""The examples of `docs/extending.md`, as a package that somebody else has installed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
ENTRY_POINTS = """
[springtide.sinks]
json_lines = theirs:JsonLines
memory = theirs:JsonLines
broken = theirs:Missing

[springtide.sources]
ticks = theirs:Ticks

[springtide.aggregates]
any_true = theirs:AnyTrue

[springtide.policies]
rows_each = theirs:RowsEach

[springtide.strategies]
one_by_one = theirs:one_by_one
"""


def examples() -> str:
    """All Python of the page, in its order."""
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S))


def install(directory: Path) -> None:
    """Put a package with the examples and their entry points where Python finds it, if this is on its path."""
    (directory / "theirs.py").write_text(examples())
    metadata = directory / "theirs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
